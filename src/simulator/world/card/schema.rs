//! The documented attributes of card JSON 2.0, as tables. What stands in no
//! table is an error, because Feishu refuses unknown attributes in 2.0.

/// What an attribute may hold.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulator) enum AttributeKind {
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

pub(in crate::simulator) type Attributes = &'static [(&'static str, AttributeKind)];

/// How a component relates to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::simulator) enum ComponentRole {
    /// A part of something: text, icon, tag.
    Part,
    Content,
    Container,
    /// Stands only directly under the body.
    RootContainer,
    Interactive,
}

pub(in crate::simulator) struct Component {
    pub(in crate::simulator) tag: &'static str,
    pub(in crate::simulator) role: ComponentRole,
    pub(in crate::simulator) required: &'static [&'static str],
    pub(in crate::simulator) attributes: Attributes,
}

pub(in crate::simulator) const PLAIN: AttributeKind = AttributeKind::Tagged(&["plain_text"]);
pub(in crate::simulator) const TEXT: AttributeKind =
    AttributeKind::Tagged(&["plain_text", "lark_md"]);
pub(in crate::simulator) const PANEL_TITLE: AttributeKind =
    AttributeKind::Tagged(&["plain_text", "markdown"]);
pub(in crate::simulator) const ICON: AttributeKind =
    AttributeKind::Tagged(&["standard_icon", "custom_icon"]);
pub(in crate::simulator) const ALIGN: AttributeKind =
    AttributeKind::OneOf(&["left", "center", "right"]);
pub(in crate::simulator) const VERTICAL: AttributeKind =
    AttributeKind::OneOf(&["top", "center", "bottom"]);
pub(in crate::simulator) const DIRECTION: AttributeKind =
    AttributeKind::OneOf(&["vertical", "horizontal"]);
pub(in crate::simulator) const CONFIRM: AttributeKind =
    AttributeKind::Object(&[("title", PLAIN), ("text", PLAIN)]);
const OPTION: AttributeKind = AttributeKind::Object(&[
    ("text", PLAIN),
    ("value", AttributeKind::Str),
    ("icon", ICON),
]);
pub(in crate::simulator) const OPTIONS: AttributeKind = AttributeKind::List(&OPTION);
const LINK: Attributes = &[
    ("url", AttributeKind::Str),
    ("pc_url", AttributeKind::Str),
    ("ios_url", AttributeKind::Str),
    ("android_url", AttributeKind::Str),
];

pub(in crate::simulator) const CARD: Attributes = &[
    ("schema", AttributeKind::OneOf(&["2.0"])),
    ("config", AttributeKind::Object(CONFIG)),
    ("card_link", AttributeKind::Object(LINK)),
    ("header", AttributeKind::Object(HEADER)),
    ("body", AttributeKind::Object(BODY)),
];

const CONFIG: Attributes = &[
    ("update_multi", AttributeKind::Bool),
    ("enable_forward", AttributeKind::Bool),
    ("enable_forward_interaction", AttributeKind::Bool),
    (
        "width_mode",
        AttributeKind::OneOf(&["default", "compact", "fill"]),
    ),
    (
        "summary",
        AttributeKind::Object(&[
            ("content", AttributeKind::Str),
            ("i18n_content", AttributeKind::Locales),
        ]),
    ),
    ("locales", AttributeKind::Strings),
    ("use_custom_translation", AttributeKind::Bool),
    (
        "style",
        AttributeKind::Object(&[
            ("text_size", AttributeKind::Free),
            ("color", AttributeKind::Free),
        ]),
    ),
    ("streaming_mode", AttributeKind::Bool),
    (
        "streaming_config",
        AttributeKind::Object(&[
            ("print_frequency_ms", AttributeKind::Free),
            ("print_step", AttributeKind::Free),
            ("print_strategy", AttributeKind::OneOf(&["fast", "delay"])),
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

pub(in crate::simulator) const TAG_COLORS: &[&str] = &[
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
    (
        "text_tag_list",
        AttributeKind::List(&AttributeKind::Tagged(&["text_tag"])),
    ),
    ("template", AttributeKind::OneOf(TEMPLATES)),
    ("icon", ICON),
    ("padding", AttributeKind::Spacing),
];

const BODY: Attributes = &[
    ("direction", DIRECTION),
    ("padding", AttributeKind::Spacing),
    ("horizontal_spacing", AttributeKind::Spacing),
    ("vertical_spacing", AttributeKind::Spacing),
    ("horizontal_align", ALIGN),
    ("vertical_align", VERTICAL),
    ("elements", AttributeKind::Elements),
];

pub(in crate::simulator) const CALLBACK: Attributes = &[
    ("type", AttributeKind::OneOf(&["callback"])),
    ("value", AttributeKind::Free),
];

pub(in crate::simulator) const OPEN_URL: Attributes = &[
    ("type", AttributeKind::OneOf(&["open_url"])),
    ("default_url", AttributeKind::Str),
    ("pc_url", AttributeKind::Str),
    ("ios_url", AttributeKind::Str),
    ("android_url", AttributeKind::Str),
];

pub(in crate::simulator) const LOCALES: &[&str] = &[
    "zh_cn", "en_us", "zh_hk", "zh_tw", "ja_jp", "id_id", "vi_vn", "th_th", "pt_br", "es_es",
    "ko_kr", "de_de", "fr_fr", "it_it", "ru_ru", "ms_my",
];
