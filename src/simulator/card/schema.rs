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
    List(&'static Kind),
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

const PLAIN: Kind = Kind::Tagged(&["plain_text"]);
const TEXT: Kind = Kind::Tagged(&["plain_text", "lark_md"]);
const PANEL_TITLE: Kind = Kind::Tagged(&["plain_text", "markdown"]);
const ICON: Kind = Kind::Tagged(&["standard_icon", "custom_icon"]);
const ALIGN: Kind = Kind::OneOf(&["left", "center", "right"]);
const VERTICAL: Kind = Kind::OneOf(&["top", "center", "bottom"]);
const DIRECTION: Kind = Kind::OneOf(&["vertical", "horizontal"]);
const CONFIRM: Kind = Kind::Object(&[("title", PLAIN), ("text", PLAIN)]);
const OPTION: Kind = Kind::Object(&[("text", PLAIN), ("value", Kind::Str), ("icon", ICON)]);
const OPTIONS: Kind = Kind::List(&OPTION);
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

const TAG_COLORS: &[&str] = &[
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

/// Allowed on every component besides its own attributes.
pub(super) const COMMON: Attributes = &[("element_id", Kind::Str), ("margin", Kind::Spacing)];

/// Shared by components that a person fills in.
pub(super) const FIELD: Attributes = &[
    ("name", Kind::Short(100)),
    ("required", Kind::Bool),
    ("disabled", Kind::Bool),
    ("disabled_tips", PLAIN),
    ("behaviors", Kind::Behaviors),
    ("confirm", CONFIRM),
    ("width", Kind::Str),
];

const SELECT: Attributes = &[
    ("type", Kind::OneOf(&["default", "text"])),
    ("placeholder", PLAIN),
    ("options", OPTIONS),
    ("initial_option", Kind::Str),
    ("initial_index", Kind::Int),
];

const MULTI_SELECT: Attributes = &[
    ("type", Kind::OneOf(&["default", "text"])),
    ("placeholder", PLAIN),
    ("options", OPTIONS),
    ("selected_values", Kind::Strings),
];

const TEXT_STYLE: Attributes = &[
    ("content", Kind::Str),
    ("i18n_content", Kind::Locales),
    ("text_size", Kind::Str),
    ("text_color", Kind::Str),
    ("text_align", ALIGN),
    ("lines", Kind::Int),
];

const fn part(
    tag: &'static str,
    required: &'static [&'static str],
    attributes: Attributes,
) -> Component {
    Component {
        tag,
        role: Role::Part,
        required,
        attributes,
    }
}

const fn component(
    tag: &'static str,
    role: Role,
    required: &'static [&'static str],
    attributes: Attributes,
) -> Component {
    Component {
        tag,
        role,
        required,
        attributes,
    }
}

pub(super) const COMPONENTS: &[Component] = &[
    part("plain_text", &["content"], TEXT_STYLE),
    part("lark_md", &["content"], TEXT_STYLE),
    part(
        "standard_icon",
        &["token"],
        &[
            ("token", Kind::Str),
            ("color", Kind::Str),
            ("size", Kind::Str),
        ],
    ),
    part(
        "custom_icon",
        &["img_key"],
        &[("img_key", Kind::Str), ("size", Kind::Str)],
    ),
    part(
        "text_tag",
        &["text"],
        &[
            ("text", PLAIN),
            ("color", Kind::OneOf(TAG_COLORS)),
            ("element_id", Kind::Str),
        ],
    ),
    component(
        "markdown",
        Role::Content,
        &["content"],
        &[
            ("content", Kind::Str),
            ("i18n_content", Kind::Locales),
            ("text_size", Kind::Str),
            ("text_align", ALIGN),
            ("icon", ICON),
        ],
    ),
    component(
        "div",
        Role::Content,
        &["text"],
        &[("text", TEXT), ("icon", ICON), ("width", Kind::Str)],
    ),
    component("hr", Role::Content, &[], &[]),
    component(
        "img",
        Role::Content,
        &["img_key"],
        &[
            ("img_key", Kind::Str),
            ("alt", PLAIN),
            ("title", TEXT),
            ("corner_radius", Kind::Str),
            (
                "scale_type",
                Kind::OneOf(&["crop_center", "crop_top", "fit_horizontal"]),
            ),
            ("size", Kind::Str),
            ("transparent", Kind::Bool),
            ("preview", Kind::Bool),
        ],
    ),
    component(
        "person",
        Role::Content,
        &["user_id"],
        &[
            ("user_id", Kind::Str),
            ("size", Kind::Str),
            ("show_avatar", Kind::Bool),
            ("show_name", Kind::Bool),
            ("style", Kind::OneOf(&["normal", "capsule"])),
        ],
    ),
    component(
        "chart",
        Role::Content,
        &["chart_spec"],
        &[
            ("chart_spec", Kind::Free),
            ("aspect_ratio", Kind::Str),
            ("color_theme", Kind::Str),
            ("preview", Kind::Bool),
            ("height", Kind::Str),
        ],
    ),
    component(
        "table",
        Role::RootContainer,
        &["columns", "rows"],
        &[
            ("columns", Kind::List(&Kind::Free)),
            ("rows", Kind::List(&Kind::Free)),
            ("page_size", Kind::Int),
            ("row_height", Kind::Str),
            ("row_max_height", Kind::Str),
            ("freeze_first_column", Kind::Bool),
            ("header_style", Kind::Free),
        ],
    ),
    component(
        "column_set",
        Role::Container,
        &["columns"],
        &[
            ("columns", Kind::List(&Kind::Tagged(&["column"]))),
            (
                "flex_mode",
                Kind::OneOf(&["none", "stretch", "flow", "bisect", "trisect"]),
            ),
            ("horizontal_spacing", Kind::Spacing),
            ("horizontal_align", ALIGN),
            ("background_style", Kind::Str),
            ("action", Kind::Free),
        ],
    ),
    component(
        "column",
        Role::Part,
        &["elements"],
        &[
            ("elements", Kind::Elements),
            ("width", Kind::Str),
            ("weight", Kind::Int),
            ("vertical_align", VERTICAL),
            ("horizontal_align", ALIGN),
            ("vertical_spacing", Kind::Spacing),
            ("horizontal_spacing", Kind::Spacing),
            ("direction", DIRECTION),
            ("padding", Kind::Spacing),
            ("background_style", Kind::Str),
            ("action", Kind::Free),
            ("element_id", Kind::Str),
            ("margin", Kind::Spacing),
        ],
    ),
    component(
        "collapsible_panel",
        Role::Container,
        &["header", "elements"],
        &[
            ("elements", Kind::Elements),
            ("expanded", Kind::Bool),
            ("header", Kind::Object(PANEL_HEADER)),
            (
                "border",
                Kind::Object(&[("color", Kind::Str), ("corner_radius", Kind::Str)]),
            ),
            ("background_color", Kind::Str),
            ("direction", DIRECTION),
            ("padding", Kind::Spacing),
            ("vertical_spacing", Kind::Spacing),
            ("horizontal_spacing", Kind::Spacing),
            ("vertical_align", VERTICAL),
            ("horizontal_align", ALIGN),
        ],
    ),
    component(
        "interactive_container",
        Role::Container,
        &["elements"],
        &[
            ("elements", Kind::Elements),
            ("name", Kind::Short(100)),
            ("width", Kind::Str),
            ("height", Kind::Str),
            ("background_style", Kind::Str),
            ("has_border", Kind::Bool),
            ("border_color", Kind::Str),
            ("corner_radius", Kind::Str),
            ("direction", DIRECTION),
            ("padding", Kind::Spacing),
            ("vertical_spacing", Kind::Spacing),
            ("horizontal_spacing", Kind::Spacing),
            ("vertical_align", VERTICAL),
            ("horizontal_align", ALIGN),
            ("behaviors", Kind::Behaviors),
            ("hover_tips", PLAIN),
            ("disabled", Kind::Bool),
            ("disabled_tips", PLAIN),
            ("confirm", CONFIRM),
        ],
    ),
    component("form", Role::RootContainer, &["name", "elements"], FORM),
    component(
        "button",
        Role::Interactive,
        &[],
        &[
            ("text", PLAIN),
            (
                "type",
                Kind::OneOf(&[
                    "default",
                    "primary",
                    "danger",
                    "text",
                    "primary_text",
                    "danger_text",
                    "primary_filled",
                    "danger_filled",
                    "laser",
                ]),
            ),
            ("size", Kind::OneOf(&["tiny", "small", "medium", "large"])),
            ("icon", ICON),
            ("hover_tips", PLAIN),
            ("form_action_type", Kind::OneOf(&["submit", "reset"])),
        ],
    ),
    component(
        "input",
        Role::Interactive,
        &[],
        &[
            ("placeholder", PLAIN),
            ("default_value", Kind::Str),
            ("i18n_default_value", Kind::Locales),
            ("max_length", Kind::Int),
            (
                "input_type",
                Kind::OneOf(&["text", "multiline_text", "password"]),
            ),
            ("show_icon", Kind::Bool),
            ("rows", Kind::Int),
            ("auto_resize", Kind::Bool),
            ("max_rows", Kind::Int),
            ("label", PLAIN),
            ("label_position", Kind::OneOf(&["top", "left"])),
            ("value", Kind::Free),
        ],
    ),
    component("select_static", Role::Interactive, &["options"], SELECT),
    component(
        "multi_select_static",
        Role::Interactive,
        &["options"],
        MULTI_SELECT,
    ),
    component("select_person", Role::Interactive, &[], SELECT),
    component("multi_select_person", Role::Interactive, &[], MULTI_SELECT),
    component(
        "overflow",
        Role::Interactive,
        &["options"],
        &[("options", OPTIONS), ("value", Kind::Free)],
    ),
    component(
        "checker",
        Role::Interactive,
        &[],
        &[
            ("checked", Kind::Bool),
            ("text", TEXT),
            ("overall_checkable", Kind::Bool),
            (
                "checked_style",
                Kind::Object(&[("show_strikethrough", Kind::Bool), ("opacity", Kind::Free)]),
            ),
            ("button_area", Kind::Free),
            ("padding", Kind::Spacing),
            ("hover_tips", PLAIN),
        ],
    ),
    component("date_picker", Role::Interactive, &[], PICKER),
    component("picker_time", Role::Interactive, &[], PICKER),
    component("picker_datetime", Role::Interactive, &[], PICKER),
];

const PICKER: Attributes = &[
    ("placeholder", PLAIN),
    ("value", Kind::Free),
    ("initial_date", Kind::Str),
    ("initial_time", Kind::Str),
    ("initial_datetime", Kind::Str),
];

const PANEL_HEADER: Attributes = &[
    ("title", PANEL_TITLE),
    ("icon", ICON),
    (
        "icon_position",
        Kind::OneOf(&["left", "right", "follow_text"]),
    ),
    ("icon_expanded_angle", Kind::Int),
    ("background_color", Kind::Str),
    ("vertical_align", VERTICAL),
    ("padding", Kind::PanelPadding),
    ("position", Kind::OneOf(&["top", "bottom"])),
    ("width", Kind::Str),
];

const FORM: Attributes = &[
    ("name", Kind::Short(100)),
    ("elements", Kind::Elements),
    ("direction", DIRECTION),
    ("padding", Kind::Spacing),
    ("horizontal_spacing", Kind::Spacing),
    ("vertical_spacing", Kind::Spacing),
    ("horizontal_align", ALIGN),
    ("vertical_align", VERTICAL),
];

pub(in crate::simulator) const LOCALES: &[&str] = &[
    "zh_cn", "en_us", "zh_hk", "zh_tw", "ja_jp", "id_id", "vi_vn", "th_th", "pt_br", "es_es",
    "ko_kr", "de_de", "fr_fr", "it_it", "ru_ru", "ms_my",
];
