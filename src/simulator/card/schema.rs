//! The documented attributes of card JSON 2.0, as tables. What stands in no
//! table is an error, because Feishu refuses unknown attributes in 2.0.

/// What an attribute may hold.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Bool,
    Int,
    Str,
    /// A string of at most this many characters.
    Short(usize),
    OneOf(&'static [&'static str]),
    /// A whole number in these bounds.
    Count(i64, i64),
    /// The size of a text, by its documented name or one of the card's own.
    TextSize,
    /// A colour by its documented name, with or without its shade.
    Colour,
    /// One of these words, or a length in pixels.
    Measure(&'static [&'static str]),
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
    Tagged(&'static [&'static str]),
    /// Components of a container.
    Elements,
    Behaviors,
}

pub(super) type Attributes = &'static [(&'static str, Kind)];

/// How a component relates to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
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
    pub(super) role: Role,
    pub(super) required: &'static [&'static str],
    pub(super) attributes: Attributes,
}

pub(super) const PLAIN: Kind = Kind::Tagged(&["plain_text"]);
pub(super) const TEXT: Kind = Kind::Tagged(&["plain_text", "lark_md"]);
pub(super) const PANEL_TITLE: Kind = Kind::Tagged(&["plain_text", "markdown"]);
pub(super) const ICON: Kind = Kind::Tagged(&["standard_icon", "custom_icon"]);
pub(super) const ALIGN: Kind = Kind::OneOf(&["left", "center", "right"]);
pub(super) const VERTICAL: Kind = Kind::OneOf(&["top", "center", "bottom"]);
pub(super) const DIRECTION: Kind = Kind::OneOf(&["vertical", "horizontal"]);
pub(super) const CONFIRM: Kind = Kind::Object(&[("title", PLAIN), ("text", PLAIN)]);
const OPTION: Kind = Kind::Object(&[("text", PLAIN), ("value", Kind::Str), ("icon", ICON)]);
pub(super) const OPTIONS: Kind = Kind::List(&OPTION);
const LINK: Attributes = &[
    ("url", Kind::Str),
    ("pc_url", Kind::Str),
    ("ios_url", Kind::Str),
    ("android_url", Kind::Str),
];

pub(super) const CARD: Attributes = &[
    ("schema", Kind::OneOf(&["2.0"])),
    ("config", Kind::Object(CONFIG)),
    ("card_link", Kind::Object(LINK)),
    ("header", Kind::Object(HEADER)),
    ("body", Kind::Object(BODY)),
];

const CONFIG: Attributes = &[
    ("update_multi", Kind::Bool),
    ("enable_forward", Kind::Bool),
    ("enable_forward_interaction", Kind::Bool),
    ("width_mode", Kind::OneOf(&["default", "compact", "fill"])),
    (
        "summary",
        Kind::Object(&[("content", Kind::Str), ("i18n_content", Kind::Locales)]),
    ),
    ("locales", Kind::Strings),
    ("use_custom_translation", Kind::Bool),
    (
        "style",
        Kind::Object(&[("text_size", Kind::Free), ("color", Kind::Free)]),
    ),
    ("streaming_mode", Kind::Bool),
    (
        "streaming_config",
        Kind::Object(&[
            ("print_frequency_ms", Kind::Free),
            ("print_step", Kind::Free),
            ("print_strategy", Kind::OneOf(&["fast", "delay"])),
        ]),
    ),
];

const TEMPLATES: &[&str] = &[
    "blue",
    "wathet",
    "turquoise",
    "green",
    "yellow",
    "orange",
    "red",
    "carmine",
    "violet",
    "purple",
    "indigo",
    "grey",
    "default",
];

pub(super) const TAG_COLORS: &[&str] = &[
    "neutral",
    "blue",
    "turquoise",
    "lime",
    "orange",
    "violet",
    "indigo",
    "wathet",
    "green",
    "yellow",
    "red",
    "purple",
    "carmine",
];

const HEADER: Attributes = &[
    ("title", TEXT),
    ("subtitle", TEXT),
    ("text_tag_list", Kind::List(&Kind::Tagged(&["text_tag"]))),
    ("template", Kind::OneOf(TEMPLATES)),
    ("icon", ICON),
    ("padding", Kind::Spacing),
];

const BODY: Attributes = &[
    ("direction", DIRECTION),
    ("padding", Kind::Spacing),
    ("horizontal_spacing", Kind::Spacing),
    ("vertical_spacing", Kind::Spacing),
    ("horizontal_align", ALIGN),
    ("vertical_align", VERTICAL),
    ("elements", Kind::Elements),
];

pub(super) const CALLBACK: Attributes =
    &[("type", Kind::OneOf(&["callback"])), ("value", Kind::Free)];

pub(super) const OPEN_URL: Attributes = &[
    ("type", Kind::OneOf(&["open_url"])),
    ("default_url", Kind::Str),
    ("pc_url", Kind::Str),
    ("ios_url", Kind::Str),
    ("android_url", Kind::Str),
];

pub(in crate::simulator) const LOCALES: &[&str] = &[
    "zh_cn", "en_us", "zh_hk", "zh_tw", "ja_jp", "id_id", "vi_vn", "th_th", "pt_br", "es_es",
    "ko_kr", "de_de", "fr_fr", "it_it", "ru_ru", "ms_my",
];
