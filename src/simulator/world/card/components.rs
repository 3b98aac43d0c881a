//! The documented components of card JSON 2.0 and their attributes.

use super::schema::{
    ALIGN, AttributeKind, Attributes, CONFIRM, Component, ComponentRole, DIRECTION, ICON, OPTIONS,
    PANEL_TITLE, PLAIN, TAG_COLORS, TEXT, VERTICAL,
};

/// Allowed on every component besides its own attributes.
pub(in crate::simulator) const COMMON: Attributes = &[
    ("element_id", AttributeKind::Str),
    ("margin", AttributeKind::Spacing),
];

/// Shared by components that a person fills in.
pub(in crate::simulator) const FIELD: Attributes = &[
    ("name", AttributeKind::Short(100)),
    ("required", AttributeKind::Bool),
    ("disabled", AttributeKind::Bool),
    ("disabled_tips", PLAIN),
    ("behaviors", AttributeKind::Behaviors),
    ("confirm", CONFIRM),
    (
        "width",
        AttributeKind::Measure(&["default", "fill", "auto"]),
    ),
];

const SELECT: Attributes = &[
    ("type", AttributeKind::OneOf(&["default", "text"])),
    ("placeholder", PLAIN),
    ("options", OPTIONS),
    ("initial_option", AttributeKind::Str),
    ("initial_index", AttributeKind::Int),
];

const MULTI_SELECT: Attributes = &[
    ("type", AttributeKind::OneOf(&["default", "text"])),
    ("placeholder", PLAIN),
    ("options", OPTIONS),
    ("selected_values", AttributeKind::Strings),
];

const TEXT_STYLE: Attributes = &[
    ("content", AttributeKind::Str),
    ("i18n_content", AttributeKind::Locales),
    ("text_size", AttributeKind::TextSize),
    ("text_color", AttributeKind::Colour),
    ("text_align", ALIGN),
    ("lines", AttributeKind::Count(1, 1_000)),
];

const fn part(
    tag: &'static str,
    required: &'static [&'static str],
    attributes: Attributes,
) -> Component {
    Component {
        tag,
        role: ComponentRole::Part,
        required,
        attributes,
    }
}

const fn component(
    tag: &'static str,
    role: ComponentRole,
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

pub(in crate::simulator) const COMPONENTS: &[Component] = &[
    part("plain_text", &["content"], TEXT_STYLE),
    part("lark_md", &["content"], TEXT_STYLE),
    part(
        "standard_icon",
        &["token"],
        &[
            ("token", AttributeKind::Str),
            ("color", AttributeKind::Str),
            ("size", AttributeKind::Str),
        ],
    ),
    part(
        "custom_icon",
        &["img_key"],
        &[
            ("img_key", AttributeKind::Str),
            ("size", AttributeKind::Str),
        ],
    ),
    part(
        "text_tag",
        &["text"],
        &[
            ("text", PLAIN),
            ("color", AttributeKind::OneOf(TAG_COLORS)),
            ("element_id", AttributeKind::Str),
        ],
    ),
    component(
        "markdown",
        ComponentRole::Content,
        &["content"],
        &[
            ("content", AttributeKind::Str),
            ("i18n_content", AttributeKind::Locales),
            ("text_size", AttributeKind::TextSize),
            ("text_align", ALIGN),
            ("icon", ICON),
        ],
    ),
    component(
        "div",
        ComponentRole::Content,
        &["text"],
        &[
            ("text", TEXT),
            ("icon", ICON),
            ("width", AttributeKind::Measure(&["fill", "auto"])),
        ],
    ),
    component("hr", ComponentRole::Content, &[], &[]),
    component(
        "img",
        ComponentRole::Content,
        &["img_key"],
        &[
            ("img_key", AttributeKind::Str),
            ("alt", PLAIN),
            ("title", TEXT),
            ("corner_radius", AttributeKind::Str),
            (
                "scale_type",
                AttributeKind::OneOf(&["crop_center", "crop_top", "fit_horizontal"]),
            ),
            ("size", AttributeKind::Str),
            ("transparent", AttributeKind::Bool),
            ("preview", AttributeKind::Bool),
        ],
    ),
    component(
        "person",
        ComponentRole::Content,
        &["user_id"],
        &[
            ("user_id", AttributeKind::Str),
            ("size", AttributeKind::Str),
            ("show_avatar", AttributeKind::Bool),
            ("show_name", AttributeKind::Bool),
            ("style", AttributeKind::OneOf(&["normal", "capsule"])),
        ],
    ),
    component(
        "chart",
        ComponentRole::Content,
        &["chart_spec"],
        &[
            ("chart_spec", AttributeKind::Free),
            ("aspect_ratio", AttributeKind::Str),
            ("color_theme", AttributeKind::Str),
            ("preview", AttributeKind::Bool),
            ("height", AttributeKind::Str),
        ],
    ),
    component(
        "table",
        ComponentRole::RootContainer,
        &["columns", "rows"],
        &[
            ("columns", AttributeKind::List(&AttributeKind::Free)),
            ("rows", AttributeKind::List(&AttributeKind::Free)),
            ("page_size", AttributeKind::Int),
            ("row_height", AttributeKind::Str),
            ("row_max_height", AttributeKind::Str),
            ("freeze_first_column", AttributeKind::Bool),
            ("header_style", AttributeKind::Free),
        ],
    ),
    component(
        "column_set",
        ComponentRole::Container,
        &["columns"],
        &[
            (
                "columns",
                AttributeKind::List(&AttributeKind::Tagged(&["column"])),
            ),
            (
                "flex_mode",
                AttributeKind::OneOf(&["none", "stretch", "flow", "bisect", "trisect"]),
            ),
            ("horizontal_spacing", AttributeKind::Spacing),
            ("horizontal_align", ALIGN),
            ("background_style", AttributeKind::Colour),
            ("action", AttributeKind::Free),
        ],
    ),
    component(
        "column",
        ComponentRole::Part,
        &["elements"],
        &[
            ("elements", AttributeKind::Elements),
            ("width", AttributeKind::Measure(&["auto", "weighted"])),
            ("weight", AttributeKind::Count(1, 5)),
            ("vertical_align", VERTICAL),
            ("horizontal_align", ALIGN),
            ("vertical_spacing", AttributeKind::Spacing),
            ("horizontal_spacing", AttributeKind::Spacing),
            ("direction", DIRECTION),
            ("padding", AttributeKind::Spacing),
            ("background_style", AttributeKind::Colour),
            ("action", AttributeKind::Free),
            ("element_id", AttributeKind::Str),
            ("margin", AttributeKind::Spacing),
        ],
    ),
    component(
        "collapsible_panel",
        ComponentRole::Container,
        &["header", "elements"],
        &[
            ("elements", AttributeKind::Elements),
            ("expanded", AttributeKind::Bool),
            ("header", AttributeKind::Object(PANEL_HEADER)),
            (
                "border",
                AttributeKind::Object(&[
                    ("color", AttributeKind::Colour),
                    ("corner_radius", AttributeKind::Spacing),
                ]),
            ),
            ("background_color", AttributeKind::Colour),
            ("direction", DIRECTION),
            ("padding", AttributeKind::Spacing),
            ("vertical_spacing", AttributeKind::Spacing),
            ("horizontal_spacing", AttributeKind::Spacing),
            ("vertical_align", VERTICAL),
            ("horizontal_align", ALIGN),
        ],
    ),
    component(
        "interactive_container",
        ComponentRole::Container,
        &["elements"],
        &[
            ("elements", AttributeKind::Elements),
            ("name", AttributeKind::Short(100)),
            ("width", AttributeKind::Str),
            ("height", AttributeKind::Str),
            ("background_style", AttributeKind::Str),
            ("has_border", AttributeKind::Bool),
            ("border_color", AttributeKind::Str),
            ("corner_radius", AttributeKind::Str),
            ("direction", DIRECTION),
            ("padding", AttributeKind::Spacing),
            ("vertical_spacing", AttributeKind::Spacing),
            ("horizontal_spacing", AttributeKind::Spacing),
            ("vertical_align", VERTICAL),
            ("horizontal_align", ALIGN),
            ("behaviors", AttributeKind::Behaviors),
            ("hover_tips", PLAIN),
            ("disabled", AttributeKind::Bool),
            ("disabled_tips", PLAIN),
            ("confirm", CONFIRM),
        ],
    ),
    component(
        "form",
        ComponentRole::RootContainer,
        &["name", "elements"],
        FORM,
    ),
    component(
        "button",
        ComponentRole::Interactive,
        &[],
        &[
            ("text", PLAIN),
            (
                "type",
                AttributeKind::OneOf(&[
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
            (
                "size",
                AttributeKind::OneOf(&["tiny", "small", "medium", "large"]),
            ),
            ("icon", ICON),
            ("hover_tips", PLAIN),
            (
                "form_action_type",
                AttributeKind::OneOf(&["submit", "reset"]),
            ),
        ],
    ),
    component(
        "input",
        ComponentRole::Interactive,
        &[],
        &[
            ("placeholder", PLAIN),
            ("default_value", AttributeKind::Str),
            ("i18n_default_value", AttributeKind::Locales),
            ("max_length", AttributeKind::Count(1, 1_000)),
            (
                "input_type",
                AttributeKind::OneOf(&["text", "multiline_text", "password"]),
            ),
            ("show_icon", AttributeKind::Bool),
            ("rows", AttributeKind::Count(1, 100)),
            ("auto_resize", AttributeKind::Bool),
            ("max_rows", AttributeKind::Count(1, 100)),
            ("label", PLAIN),
            ("label_position", AttributeKind::OneOf(&["top", "left"])),
            ("value", AttributeKind::Free),
        ],
    ),
    component(
        "select_static",
        ComponentRole::Interactive,
        &["options"],
        SELECT,
    ),
    component(
        "multi_select_static",
        ComponentRole::Interactive,
        &["options"],
        MULTI_SELECT,
    ),
    component("select_person", ComponentRole::Interactive, &[], SELECT),
    component(
        "multi_select_person",
        ComponentRole::Interactive,
        &[],
        MULTI_SELECT,
    ),
    component(
        "overflow",
        ComponentRole::Interactive,
        &["options"],
        &[("options", OPTIONS), ("value", AttributeKind::Free)],
    ),
    component(
        "checker",
        ComponentRole::Interactive,
        &[],
        &[
            ("checked", AttributeKind::Bool),
            ("text", TEXT),
            ("overall_checkable", AttributeKind::Bool),
            (
                "checked_style",
                AttributeKind::Object(&[
                    ("show_strikethrough", AttributeKind::Bool),
                    ("opacity", AttributeKind::Free),
                ]),
            ),
            ("button_area", AttributeKind::Free),
            ("padding", AttributeKind::Spacing),
            ("hover_tips", PLAIN),
        ],
    ),
    component("date_picker", ComponentRole::Interactive, &[], PICKER),
    component("picker_time", ComponentRole::Interactive, &[], PICKER),
    component("picker_datetime", ComponentRole::Interactive, &[], PICKER),
];

const PICKER: Attributes = &[
    ("placeholder", PLAIN),
    ("value", AttributeKind::Free),
    ("initial_date", AttributeKind::Str),
    ("initial_time", AttributeKind::Str),
    ("initial_datetime", AttributeKind::Str),
];

const PANEL_HEADER: Attributes = &[
    ("title", PANEL_TITLE),
    ("icon", ICON),
    (
        "icon_position",
        AttributeKind::OneOf(&["left", "right", "follow_text"]),
    ),
    ("icon_expanded_angle", AttributeKind::Int),
    ("background_color", AttributeKind::Colour),
    ("vertical_align", VERTICAL),
    ("padding", AttributeKind::PanelPadding),
    ("position", AttributeKind::OneOf(&["top", "bottom"])),
    (
        "width",
        AttributeKind::Measure(&["fill", "auto", "auto_when_fold"]),
    ),
];

const FORM: Attributes = &[
    ("name", AttributeKind::Short(100)),
    ("elements", AttributeKind::Elements),
    ("direction", DIRECTION),
    ("padding", AttributeKind::Spacing),
    ("horizontal_spacing", AttributeKind::Spacing),
    ("vertical_spacing", AttributeKind::Spacing),
    ("horizontal_align", ALIGN),
    ("vertical_align", VERTICAL),
];
