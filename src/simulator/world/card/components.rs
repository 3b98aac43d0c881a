//! The documented components of card JSON 2.0 and their attributes.

use super::schema::AttributeKind::{
    Behaviors, Bool, Colour, Count, Elements, Free, Int, List, Locales, Measure, Object, OneOf,
    PanelPadding, Short, Spacing, Str, Strings, Tagged, TextSize,
};
use super::schema::ComponentRole::{Container, Content, Interactive, Part, RootContainer};
use super::schema::{
    ALIGN, Attributes, CONFIRM, Component, ComponentRole, DIRECTION, ICON, Names, OPTIONS,
    PANEL_TITLE, PLAIN, TAG_COLORS, TEXT, VERTICAL,
};

/// Allowed on every component besides its own attributes.
pub(super) const COMMON: Attributes = &[(Str, "element_id"), (Spacing, "margin")];

/// Shared by components that a person fills in.
pub(super) const FIELD: Attributes = &[
    (Short(100), "name"),
    (Bool, "required disabled"),
    (PLAIN, "disabled_tips"),
    (Behaviors, "behaviors"),
    (CONFIRM, "confirm"),
    (Measure("default fill auto"), "width"),
];

const fn component(
    tag: &'static str,
    role: ComponentRole,
    required: Names,
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
    component("plain_text", Part, "content", TEXT_STYLE),
    component("lark_md", Part, "content", TEXT_STYLE),
    component("standard_icon", Part, "token", &[(Str, "token color size")]),
    component("custom_icon", Part, "img_key", &[(Str, "img_key size")]),
    component("text_tag", Part, "text", TEXT_TAG),
    component("markdown", Content, "content", MARKDOWN),
    component("div", Content, "text", DIV),
    component("hr", Content, "", &[]),
    component("img", Content, "img_key", IMAGE),
    component("person", Content, "user_id", PERSON),
    component("chart", Content, "chart_spec", CHART),
    component("table", RootContainer, "columns rows", TABLE),
    component("column_set", Container, "columns", COLUMN_SET),
    component("column", Part, "elements", COLUMN),
    component("collapsible_panel", Container, "header elements", PANEL),
    component("interactive_container", Container, "elements", PRESSABLE),
    component("form", RootContainer, "name elements", FORM),
    component("button", Interactive, "", BUTTON),
    component("input", Interactive, "", INPUT),
    component("select_static", Interactive, "options", SELECT),
    component("multi_select_static", Interactive, "options", MULTI_SELECT),
    component("select_person", Interactive, "", SELECT),
    component("multi_select_person", Interactive, "", MULTI_SELECT),
    component("overflow", Interactive, "options", OVERFLOW),
    component("checker", Interactive, "", CHECKER),
    component("date_picker", Interactive, "", PICKER),
    component("picker_time", Interactive, "", PICKER),
    component("picker_datetime", Interactive, "", PICKER),
];

const TEXT_STYLE: Attributes = &[
    (Str, "content"),
    (Locales, "i18n_content"),
    (TextSize, "text_size"),
    (Colour, "text_color"),
    (ALIGN, "text_align"),
    (Count(1, 1_000), "lines"),
];

const TEXT_TAG: Attributes = &[
    (PLAIN, "text"),
    (OneOf(TAG_COLORS), "color"),
    (Str, "element_id"),
];

const MARKDOWN: Attributes = &[
    (Str, "content"),
    (Locales, "i18n_content"),
    (TextSize, "text_size"),
    (ALIGN, "text_align"),
    (ICON, "icon"),
];

const DIV: Attributes = &[
    (TEXT, "text"),
    (ICON, "icon"),
    (Measure("fill auto"), "width"),
];

const IMAGE: Attributes = &[
    (Str, "img_key corner_radius size"),
    (PLAIN, "alt"),
    (TEXT, "title"),
    (OneOf("crop_center crop_top fit_horizontal"), "scale_type"),
    (Bool, "transparent preview"),
];

const PERSON: Attributes = &[
    (Str, "user_id size"),
    (Bool, "show_avatar show_name"),
    (OneOf("normal capsule"), "style"),
];

const CHART: Attributes = &[
    (Free, "chart_spec"),
    (Str, "aspect_ratio color_theme height"),
    (Bool, "preview"),
];

const TABLE: Attributes = &[
    (List(&Free), "columns rows"),
    (Int, "page_size"),
    (Str, "row_height row_max_height"),
    (Bool, "freeze_first_column"),
    (Free, "header_style"),
];

const COLUMN_SET: Attributes = &[
    (List(&Tagged("column")), "columns"),
    (OneOf("none stretch flow bisect trisect"), "flex_mode"),
    (Spacing, "horizontal_spacing"),
    (ALIGN, "horizontal_align"),
    (Colour, "background_style"),
    (Free, "action"),
];

const COLUMN: Attributes = &[
    (Elements, "elements"),
    (Measure("auto weighted"), "width"),
    (Count(1, 5), "weight"),
    (DIRECTION, "direction"),
    (
        Spacing,
        "padding horizontal_spacing vertical_spacing margin",
    ),
    (ALIGN, "horizontal_align"),
    (VERTICAL, "vertical_align"),
    (Colour, "background_style"),
    (Free, "action"),
    (Str, "element_id"),
];

const PANEL: Attributes = &[
    (Elements, "elements"),
    (Bool, "expanded"),
    (Object(PANEL_HEADER), "header"),
    (
        Object(&[(Colour, "color"), (Spacing, "corner_radius")]),
        "border",
    ),
    (Colour, "background_color"),
    (DIRECTION, "direction"),
    (Spacing, "padding horizontal_spacing vertical_spacing"),
    (ALIGN, "horizontal_align"),
    (VERTICAL, "vertical_align"),
];

const PANEL_HEADER: Attributes = &[
    (PANEL_TITLE, "title"),
    (ICON, "icon"),
    (OneOf("left right follow_text"), "icon_position"),
    (Int, "icon_expanded_angle"),
    (Colour, "background_color"),
    (VERTICAL, "vertical_align"),
    (PanelPadding, "padding"),
    (OneOf("top bottom"), "position"),
    (Measure("fill auto auto_when_fold"), "width"),
];

const PRESSABLE: Attributes = &[
    (Elements, "elements"),
    (Short(100), "name"),
    (
        Str,
        "width height background_style border_color corner_radius",
    ),
    (Bool, "has_border disabled"),
    (DIRECTION, "direction"),
    (Spacing, "padding horizontal_spacing vertical_spacing"),
    (ALIGN, "horizontal_align"),
    (VERTICAL, "vertical_align"),
    (Behaviors, "behaviors"),
    (PLAIN, "hover_tips disabled_tips"),
    (CONFIRM, "confirm"),
];

const FORM: Attributes = &[
    (Short(100), "name"),
    (Elements, "elements"),
    (DIRECTION, "direction"),
    (Spacing, "padding horizontal_spacing vertical_spacing"),
    (ALIGN, "horizontal_align"),
    (VERTICAL, "vertical_align"),
];

const BUTTON: Attributes = &[
    (PLAIN, "text hover_tips"),
    (OneOf(BUTTON_TYPES), "type"),
    (OneOf("tiny small medium large"), "size"),
    (ICON, "icon"),
    (OneOf("submit reset"), "form_action_type"),
];

const BUTTON_TYPES: Names = "default primary danger text primary_text danger_text \
    primary_filled danger_filled laser";

const INPUT: Attributes = &[
    (PLAIN, "placeholder label"),
    (Str, "default_value"),
    (Locales, "i18n_default_value"),
    (Count(1, 1_000), "max_length"),
    (OneOf("text multiline_text password"), "input_type"),
    (Bool, "show_icon auto_resize"),
    (Count(1, 100), "rows max_rows"),
    (OneOf("top left"), "label_position"),
    (Free, "value"),
];

const SELECT: Attributes = &[
    (OneOf("default text"), "type"),
    (PLAIN, "placeholder"),
    (OPTIONS, "options"),
    (Str, "initial_option"),
    (Int, "initial_index"),
];

const MULTI_SELECT: Attributes = &[
    (OneOf("default text"), "type"),
    (PLAIN, "placeholder"),
    (OPTIONS, "options"),
    (Strings, "selected_values"),
];

const OVERFLOW: Attributes = &[(OPTIONS, "options"), (Free, "value")];

const CHECKER: Attributes = &[
    (Bool, "checked overall_checkable"),
    (TEXT, "text"),
    (
        Object(&[(Bool, "show_strikethrough"), (Free, "opacity")]),
        "checked_style",
    ),
    (Free, "button_area"),
    (Spacing, "padding"),
    (PLAIN, "hover_tips"),
];

const PICKER: Attributes = &[
    (PLAIN, "placeholder"),
    (Free, "value"),
    (Str, "initial_date initial_time initial_datetime"),
];
