//! The documented attributes of card JSON 2.0, as tables. What stands in no
//! table is an error, because Feishu refuses unknown attributes in 2.0.

use serde_json::{Map, Value};

/// Names with a space between them.
pub(super) type Names = &'static str;

pub(super) fn among(names: Names, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

/// What an attribute may hold.
#[derive(Debug, Clone, Copy)]
pub(super) enum AttributeKind {
    Bool,
    Int,
    Str,
    /// A string of at most this many characters.
    Short(usize),
    OneOf(Names),
    /// A whole number in these bounds.
    Count(i64, i64),
    /// The size of a text, by its documented name or one of the card's own.
    TextSize,
    /// A colour by its documented name, with or without its shade.
    Colour,
    /// One of these words, or a length in pixels.
    Measure(Names),
    Strings,
    /// Any object: a callback value, a chart specification.
    Free,
    /// `i18n_content` and its kin: locale to text.
    Locales,
    /// Lengths such as `8px` or `4px 8px 4px 8px`, or a named spacing.
    Spacing,
    /// 1 or 4 lengths; two were refused live although documented.
    PanelPadding,
    Object(Attributes),
    List(&'static Self),
    /// An object whose `tag` is one of these.
    Tagged(Names),
    /// Components of a container.
    Elements,
    Behaviors,
}

use AttributeKind::{
    Bool, Elements, Free, List, Locales, Object, OneOf, Spacing, Str, Strings, Tagged,
};

/// What may be held, and by the attributes of which names.
pub(super) type Attributes = &'static [(AttributeKind, Names)];

/// How a component relates to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComponentRole {
    /// A part of something: text, icon, tag.
    Part,
    Content,
    Container,
    /// Stands only directly under the body.
    RootContainer,
    Interactive,
}

pub(super) struct Component {
    pub(super) tag: &'static str,
    pub(super) role: ComponentRole,
    pub(super) required: Names,
    pub(super) attributes: Attributes,
}

pub(super) const PLAIN: AttributeKind = Tagged("plain_text");
pub(super) const TEXT: AttributeKind = Tagged("plain_text lark_md");
pub(super) const PANEL_TITLE: AttributeKind = Tagged("plain_text markdown");
pub(super) const ICON: AttributeKind = Tagged("standard_icon custom_icon");
pub(super) const ALIGN: AttributeKind = OneOf("left center right");
pub(super) const VERTICAL: AttributeKind = OneOf("top center bottom");
pub(super) const DIRECTION: AttributeKind = OneOf("vertical horizontal");
pub(super) const CONFIRM: AttributeKind = Object(&[(PLAIN, "title text")]);
pub(super) const OPTIONS: AttributeKind =
    List(&Object(&[(PLAIN, "text"), (Str, "value"), (ICON, "icon")]));

pub(super) const CARD: Attributes = &[
    (OneOf("2.0"), "schema"),
    (Object(CONFIG), "config"),
    (
        Object(&[(Str, "url pc_url ios_url android_url")]),
        "card_link",
    ),
    (Object(HEADER), "header"),
    (Object(BODY), "body"),
];

const CONFIG: Attributes = &[
    (
        Bool,
        "update_multi enable_forward enable_forward_interaction",
    ),
    (Bool, "use_custom_translation streaming_mode"),
    (OneOf("default compact fill"), "width_mode"),
    (
        Object(&[(Str, "content"), (Locales, "i18n_content")]),
        "summary",
    ),
    (Strings, "locales"),
    (Object(&[(Free, "text_size color")]), "style"),
    (Object(STREAMING), "streaming_config"),
];

const STREAMING: Attributes = &[
    (Free, "print_frequency_ms print_step"),
    (OneOf("fast delay"), "print_strategy"),
];

const TEMPLATES: Names = "blue wathet turquoise green yellow orange red carmine violet purple \
    indigo grey default";

pub(super) const TAG_COLORS: Names = "neutral blue turquoise lime orange violet indigo wathet \
    green yellow red purple carmine";

const HEADER: Attributes = &[
    (TEXT, "title subtitle"),
    (List(&Tagged("text_tag")), "text_tag_list"),
    (OneOf(TEMPLATES), "template"),
    (ICON, "icon"),
    (Spacing, "padding"),
];

const BODY: Attributes = &[
    (Elements, "elements"),
    (DIRECTION, "direction"),
    (Spacing, "padding horizontal_spacing vertical_spacing"),
    (ALIGN, "horizontal_align"),
    (VERTICAL, "vertical_align"),
];

pub(super) const CALLBACK: Attributes = &[(OneOf("callback"), "type"), (Free, "value")];

pub(super) const OPEN_URL: Attributes = &[
    (OneOf("open_url"), "type"),
    (Str, "default_url pc_url ios_url android_url"),
];

const LOCALES: Names = "zh_cn en_us zh_hk zh_tw ja_jp id_id vi_vn th_th pt_br es_es \
    ko_kr de_de fr_fr it_it ru_ru ms_my";

pub(in crate::simulator) fn are_texts_by_locale(map: &Map<String, Value>) -> bool {
    map.iter()
        .all(|(key, text)| among(LOCALES, key) && text.is_string())
}
