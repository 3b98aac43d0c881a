//! The documented components of card JSON 2.0 and their attributes.

use super::schema::{
    ALIGN, Attributes, CONFIRM, Component, DIRECTION, ICON, Kind, OPTIONS, PANEL_TITLE, PLAIN,
    Role, TAG_COLORS, TEXT, VERTICAL,
};

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
    ("width", Kind::Measure(&["default", "fill", "auto"])),
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
    ("text_size", Kind::TextSize),
    ("text_color", Kind::Colour),
    ("text_align", ALIGN),
    ("lines", Kind::Count(1, 1_000)),
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
            ("text_size", Kind::TextSize),
            ("text_align", ALIGN),
            ("icon", ICON),
        ],
    ),
    component(
        "div",
        Role::Content,
        &["text"],
        &[
            ("text", TEXT),
            ("icon", ICON),
            ("width", Kind::Measure(&["fill", "auto"])),
        ],
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
            ("background_style", Kind::Colour),
            ("action", Kind::Free),
        ],
    ),
    component(
        "column",
        Role::Part,
        &["elements"],
        &[
            ("elements", Kind::Elements),
            ("width", Kind::Measure(&["auto", "weighted"])),
            ("weight", Kind::Count(1, 5)),
            ("vertical_align", VERTICAL),
            ("horizontal_align", ALIGN),
            ("vertical_spacing", Kind::Spacing),
            ("horizontal_spacing", Kind::Spacing),
            ("direction", DIRECTION),
            ("padding", Kind::Spacing),
            ("background_style", Kind::Colour),
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
                Kind::Object(&[("color", Kind::Colour), ("corner_radius", Kind::Spacing)]),
            ),
            ("background_color", Kind::Colour),
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
            ("max_length", Kind::Count(1, 1_000)),
            (
                "input_type",
                Kind::OneOf(&["text", "multiline_text", "password"]),
            ),
            ("show_icon", Kind::Bool),
            ("rows", Kind::Count(1, 100)),
            ("auto_resize", Kind::Bool),
            ("max_rows", Kind::Count(1, 100)),
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
    ("background_color", Kind::Colour),
    ("vertical_align", VERTICAL),
    ("padding", Kind::PanelPadding),
    ("position", Kind::OneOf(&["top", "bottom"])),
    ("width", Kind::Measure(&["fill", "auto", "auto_when_fold"])),
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
