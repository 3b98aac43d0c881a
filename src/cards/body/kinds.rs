//! Each tool's own title and layout. A title is the thing itself: the command's
//! first line, the file, the host; where that could be taken for another kind of
//! call, a word before it says which.

use serde_json::{Map, Value};
use std::path::Path;
use url::Url;

use super::diff::{self, Diff};
use super::{CLAIM, GLANCE, Sheet, coloured, danger, div, framed, note, secrets, subject};
use crate::approvals::request::{RealPath, Request};
use crate::danger::{Danger, ScanKind};
use crate::rules::codex::WantedGrant;
use crate::rules::path;
use crate::text::escape::{Budget, Shape};
use crate::text::lists;
use crate::wording::{card as words, codex, rule as said};

/// The tools with a layout of their own.
const LAID_OUT: &str = "\
    Bash CodexPermissions Edit MultiEdit NotebookEdit Patch Read WebFetch WebSearch Write";
/// More files than this are not laid out one by one.
const MAX_CHANGES: usize = 6;
/// An edit with more changed lines than this shows [`FIRST`] of them above the
/// buttons.
const FEW: usize = 12;
const FIRST: usize = 8;

pub(super) fn lay_out(sheet: &mut Sheet, request: &Request) {
    let known = request
        .input
        .as_object()
        .is_some_and(|input| known(sheet, request, input).is_some());
    if known {
        return;
    }
    sheet.body = super::CardBody::default();
    if lists::has(LAID_OUT, &request.tool) {
        sheet.push(coloured(words::UNUSUAL.get(sheet.lang), "red"));
    }
    let title = mcp_title(&request.tool).unwrap_or_else(|| request.tool.clone());
    sheet.title(&title, Shape::Name, &secrets::find(&title));
    sheet.fields(&words::INPUT, &request.input, &[], 8);
}

/// Server and tool of `mcp__github__create_issue`.
pub(in crate::cards) fn mcp_title(tool: &str) -> Option<String> {
    let (server, tool) = tool.strip_prefix("mcp__")?.split_once("__")?;
    Some(format!("{server} · {tool}"))
}

fn text<'a>(input: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    input.get(name)?.as_str()
}

/// The tool's own layout; none when the input isn't what the tool takes.
fn known(sheet: &mut Sheet, request: &Request, input: &Map<String, Value>) -> Option<()> {
    let all = &request.input;
    match &*request.tool {
        "Bash" => shell(sheet, request, input)?,
        "CodexPermissions" => wanted(sheet, request, input)?,
        "Edit" => {
            let diff = diff::of(&[input])?;
            let mut shown = vec!["old_string", "new_string", "replace_all"];
            shown.extend(edited(sheet, request, text(input, "file_path")?, &diff));
            if input.get("replace_all") == Some(&Value::Bool(true)) {
                sheet.push(note(words::REPLACE_ALL.get(sheet.lang)));
            }
            sheet.fields(&words::FIELDS, all, &shown, 1);
        }
        "MultiEdit" => {
            let edits = input.get("edits")?.as_array()?;
            let edits: Option<Vec<_>> = edits.iter().map(Value::as_object).collect();
            let diff = diff::of(&edits?)?;
            let mut shown = vec!["edits"];
            shown.extend(edited(sheet, request, text(input, "file_path")?, &diff));
            sheet.fields(&words::FIELDS, all, &shown, 1);
        }
        "Write" => {
            let content = text(input, "content")?;
            let lines = format!("+{}", content.lines().count());
            let named = file(sheet, request, text(input, "file_path")?, &lines);
            written(sheet, request, "file_path", &[content]);
            sheet.block(&words::CONTENT, content, Shape::Code, 6, ScanKind::Content);
            let shown: Vec<_> = ["content"].into_iter().chain(named).collect();
            sheet.fields(&words::FIELDS, all, &shown, 1);
        }
        "NotebookEdit" => {
            let source = text(input, "new_source")?;
            match text(input, "notebook_path") {
                Some(named) => drop(file(sheet, request, named, "")),
                None => drop(sheet.title(&request.tool, Shape::Name, &[])),
            }
            written(sheet, request, "notebook_path", &[source]);
            sheet.block(&words::CELL, source, Shape::Code, 5, ScanKind::Content);
            sheet.fields(&words::FIELDS, all, &["new_source"], 2);
        }
        "Patch" => {
            patch(sheet, request, input.get("changes")?.as_array()?)?;
            sheet.fields(&words::FIELDS, all, &["changes"], 1);
        }
        "Read" => {
            let named = file(sheet, request, text(input, "file_path")?, "");
            sheet.say_what(words::reads);
            let shown: Vec<_> = named.into_iter().collect();
            sheet.fields(&words::FIELDS, all, &shown, 6);
        }
        "WebFetch" => {
            let url = text(input, "url")?;
            let host = Url::parse(url)
                .ok()
                .and_then(|url| url.host_str().map(str::to_owned));
            let title = host.as_deref().unwrap_or(url);
            sheet.title(title, Shape::Name, &secrets::find(title));
            sheet.body.subject = subject(url, Shape::Line, ScanKind::Content);
            sheet.block(&words::URL, url, Shape::Line, 3, ScanKind::Content);
            if let Some(host) = host {
                let host = sheet.line(&words::HOST, &host, ScanKind::Content);
                sheet.body.more.push(div(&host));
            }
            let mut shown = vec!["url"];
            if let Some(prompt) = text(input, "prompt") {
                sheet.block(&words::PROMPT, prompt, Shape::Lines, 3, ScanKind::Content);
                shown.push("prompt");
            }
            sheet.fields(&words::FIELDS, all, &shown, 2);
        }
        "WebSearch" => {
            let query = text(input, "query")?;
            let whole = sheet.title(query, Shape::Line, &secrets::find(query));
            sheet.say_what(words::searches);
            sheet.body.subject = subject(query, Shape::Line, ScanKind::Content);
            if whole && !everything(sheet) {
                sheet.show(query, Shape::Line, GLANCE, ScanKind::Content);
            } else {
                sheet.block(&words::QUERY, query, Shape::Line, 4, ScanKind::Content);
            }
            sheet.fields(&words::FIELDS, all, &["query"], 4);
        }
        _ => return None,
    }
    Some(())
}

/// A command, and whatever it would be granted besides.
fn shell(sheet: &mut Sheet, request: &Request, input: &Map<String, Value>) -> Option<()> {
    let all = &request.input;
    command(sheet, text(input, "command")?);
    let mut shown = vec!["command"];
    if let Some(session) = text(input, "typed_into") {
        let session = sheet.show(session, Shape::Name, CLAIM, ScanKind::Name);
        let said = codex::typed_into(&session);
        sheet.push(coloured(said.get(sheet.lang), "red"));
        shown.push("typed_into");
    }
    shown.extend(permissions(sheet, request).map(|_| "permissions"));
    shown.extend(connection(sheet, input).map(|()| "connects_to"));
    if let Some(claim) = text(input, "description") {
        sheet.claim(claim);
        shown.push("description");
    }
    sheet.fields(&words::FIELDS, all, &shown, 2);
    Some(())
}

/// A wish for permissions.
fn wanted(sheet: &mut Sheet, request: &Request, input: &Map<String, Value>) -> Option<()> {
    let all = &request.input;
    let grant = permissions(sheet, request)?;
    let which: Vec<_> = grant
        .rules()
        .into_iter()
        .filter_map(|it| it.content)
        .collect();
    let which = which.join(", ");
    sheet.title(&which, Shape::Name, &secrets::find(&which));
    sheet.say_what(codex::wants_permissions);
    let said = said::grant(&grant);
    sheet.body.subject = subject(said.get(sheet.lang), Shape::Line, ScanKind::Content);
    let mut shown = vec!["permissions"];
    if let Some(claim) = text(input, "reason") {
        sheet.claim(claim);
        shown.push("reason");
    }
    sheet.fields(&words::FIELDS, all, &shown, 4);
    Some(())
}

/// Permissions beyond the sandbox, as a sentence that says how far they reach
/// and how long they hold.
fn permissions<'a>(sheet: &mut Sheet, request: &'a Request) -> Option<WantedGrant<'a>> {
    let grant = WantedGrant::of(&request.input)?;
    sheet.beware(Danger::MorePermissions);
    let said = said::grant(&grant);
    sheet.push(coloured(said.get(sheet.lang), "red"));
    for place in &grant.places {
        if let Some(real) = place.real {
            let line = sheet.line(&words::REAL_PATH, real, ScanKind::Name);
            sheet.push(coloured(&line, "red"));
        }
        for path in [Some(place.path), place.real].into_iter().flatten() {
            judge_places(sheet, request, path, |path| {
                if place.written {
                    danger::written(path, &[])
                } else {
                    danger::read(path)
                }
            });
        }
    }
    Some(grant)
}

/// The place that a command wants to reach through Codex's network sandbox.
fn connection(sheet: &mut Sheet, input: &Map<String, Value>) -> Option<()> {
    let place = text(input, "connects_to")?;
    sheet.beware(Danger::MorePermissions);
    let shown = sheet.show(place, Shape::Name, GLANCE, ScanKind::Name);
    let said = codex::connects_to(&shown);
    sheet.push(coloured(said.get(sheet.lang), "red"));
    Some(())
}

fn everything(sheet: &Sheet) -> bool {
    sheet.budget == crate::cards::EVERYTHING
}

/// The first line that does something is the title; a remark of the agent's is
/// not. The whole stands below it where that is not all.
fn command(sheet: &mut Sheet, command: &str) {
    sheet.body.subject = subject(command, Shape::Command, ScanKind::Command);
    let masks = secrets::masks(command);
    let acts = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut at = 0;
    let mut first = command;
    for line in command.split_inclusive('\n') {
        if acts(line) {
            first = line.trim_end_matches('\n');
            break;
        }
        at += line.len();
    }
    let whole = if first.len() == command.trim_end_matches('\n').len() {
        sheet.title(first, Shape::Command, &masks)
    } else {
        let end = (at + first.len()).min(command.len());
        let here = at.min(end)..end;
        let inside = masks.into_iter().filter_map(|mut mask| {
            let start = mask.range.start.checked_sub(here.start)?;
            let stop = mask.range.end.checked_sub(here.start)?;
            mask.range = start..stop;
            (stop <= here.len()).then_some(mask)
        });
        let inside: Vec<_> = inside.collect();
        sheet.title(&command[here.clone()], Shape::Command, &inside);
        let more = sheet.body.title.trim_end_matches('…');
        let before = if at == 0 { "" } else { "… " };
        sheet.body.title = format!("{before}{more}…");
        false
    };
    if whole && !everything(sheet) {
        sheet.show(command, Shape::Command, GLANCE, ScanKind::Command);
    } else {
        sheet.block(
            &words::COMMAND,
            command,
            Shape::Command,
            5,
            ScanKind::Command,
        );
    }
}

/// An edit by its file and its changed lines. Says which field it showed.
fn edited(sheet: &mut Sheet, request: &Request, named: &str, diff: &Diff) -> Option<&'static str> {
    let field = file(sheet, request, named, &diff.count());
    written(sheet, request, "file_path", &[&diff.text]);
    let first = if diff.changed() > FEW {
        diff.first(FIRST)
    } else {
        diff.text.len()
    };
    let more = diff.count_after(first);
    // What would be torn apart below is judged whole.
    for hit in danger::scan(&diff.text, ScanKind::Content) {
        sheet.beware(hit.danger);
    }
    let coloured = |_: &Sheet, text: &str| framed(runs(text));
    sheet.told(
        &words::CHANGES,
        6,
        GLANCE_DIFF,
        coloured,
        |sheet, budget| {
            if !sheet.glance {
                return sheet.show(&diff.text, Shape::Diff, budget, ScanKind::Content);
            }
            let (shown, rest) = diff.text.split_at(first);
            let mut text = sheet.show(shown, Shape::Diff, budget, ScanKind::Content);
            if !rest.is_empty() {
                sheet.skip("", rest, ScanKind::Content);
                let end = if text.ends_with('\n') { "" } else { "\n" };
                text = format!("{text}{end}{}", words::more_changes(&more).get(sheet.lang));
            }
            text
        },
    );
    field
}

/// Several files at once, as Codex changes them. The first is the title; more
/// than a few are listed and not laid out.
fn patch(sheet: &mut Sheet, request: &Request, changes: &[Value]) -> Option<()> {
    if changes.len() > MAX_CHANGES {
        sheet.title(&request.tool, Shape::Name, &[]);
        sheet.fields(&words::CHANGES, &request.input, &[], 8);
        return Some(());
    }
    let share = (6 / changes.len().max(1)).max(1);
    let mut title = String::new();
    for each in changes {
        change(sheet, request, each.as_object()?, share)?;
        if title.is_empty() {
            title = std::mem::take(&mut sheet.body.title);
        }
    }
    sheet.body.title = match changes.len() {
        0 | 1 => title,
        all => format!("{title}  +{}", all - 1),
    };
    Some(())
}

/// One file of a patch: where, what is done to it, and how.
fn change(
    sheet: &mut Sheet,
    request: &Request,
    change: &Map<String, Value>,
    share: usize,
) -> Option<()> {
    let (named, diff) = (text(change, "path")?, text(change, "diff")?);
    file(sheet, request, named, "");
    let line = sheet.line(&words::PATH, named, ScanKind::Name);
    sheet.push(div(&line));
    let kind = change.get("kind")?;
    match kind["type"].as_str()? {
        "add" => sheet.push(note(words::ADDS_FILE.get(sheet.lang))),
        "delete" => sheet.push(coloured(words::DELETES_FILE.get(sheet.lang), "red")),
        "update" => {}
        _ => return None,
    }
    judge_places(sheet, request, named, |path| danger::written(path, &[diff]));
    let others = [
        (&words::MOVED_TO, kind.get("move_path")),
        (&words::REAL_PATH, change.get("real_path")),
    ];
    for (label, to) in others {
        if let Some(to) = to.and_then(Value::as_str) {
            let line = sheet.line(label, to, ScanKind::Name);
            sheet.push(coloured(&line, "red"));
            judge_places(sheet, request, to, |path| danger::written(path, &[diff]));
        }
    }
    sheet.block(&words::CHANGES, diff, Shape::Diff, share, ScanKind::Content);
    let shown = ["path", "diff", "kind", "real_path"];
    sheet.fields(&words::FIELDS, &Value::Object(change.clone()), &shown, 1);
    Some(())
}

/// Twelve changed lines and what stands around them.
const GLANCE_DIFF: Budget = Budget::new(900, 24);

/// Lines of a diff, told apart by colour too.
fn runs(text: &str) -> Vec<Value> {
    let colour = |line: &str| match line.bytes().next() {
        Some(b'+') => "green",
        Some(b'-') => "red",
        _ => "grey",
    };
    let mut nodes: Vec<Value> = Vec::new();
    let mut run: Option<(&str, String)> = None;
    let close = |run: Option<(&str, String)>, nodes: &mut Vec<Value>| {
        if let Some((colour, text)) = run {
            let mut node = div(&text);
            node["text"]["text_color"] = colour.into();
            nodes.push(node);
        }
    };
    for line in text.lines() {
        match &mut run {
            Some((of, text)) if *of == colour(line) => {
                text.push('\n');
                text.push_str(line);
            }
            _ => {
                close(run.take(), &mut nodes);
                run = Some((colour(line), line.to_owned()));
            }
        }
    }
    close(run, &mut nodes);
    nodes
}

/// The file as the title, where it really is in the fold, and whether that is
/// outside the project. Says which field it thereby showed.
fn file(sheet: &mut Sheet, request: &Request, named: &str, count: &str) -> Option<&'static str> {
    let resolved = path::resolve(&request.origin.cwd, named);
    let whole = resolved.to_string_lossy();
    let inside = path::is_inside(&resolved, &request.origin.project);
    let near = resolved.strip_prefix(&request.origin.project);
    let near = near.map_or(&*resolved, |near| if inside { near } else { &resolved });
    title(sheet, near, count);
    sheet.body.subject = subject(&whole, Shape::Name, ScanKind::Name);
    let line = sheet.line(&words::PATH, &whole, ScanKind::Name);
    if everything(sheet) {
        sheet.push(div(&line));
    } else {
        sheet.body.more.push(div(&line));
    }
    let inside = match &request.real {
        RealPath::Unasked => inside,
        RealPath::Unknown => {
            sheet.push(coloured(words::REAL_UNKNOWN.get(sheet.lang), "red"));
            inside
        }
        RealPath::Known {
            path: real,
            project,
        } => {
            if request
                .real
                .is_elsewhere(&resolved, &request.origin.project)
            {
                let line = sheet.line(&words::REAL_PATH, &real.to_string_lossy(), ScanKind::Name);
                sheet.push(coloured(&line, "red"));
            }
            path::is_inside(real, project)
        }
    };
    if !inside {
        sheet.push(coloured(words::OUTSIDE.get(sheet.lang), "red"));
    }
    judge_places(sheet, request, named, danger::read);
    let is_shown = whole == named || near.as_os_str() == named;
    is_shown.then_some("file_path")
}

/// The end of a long path says more than its beginning.
fn title(sheet: &mut Sheet, near: &Path, count: &str) {
    let text = near.to_string_lossy();
    if sheet.title(&text, Shape::Name, &secrets::find(&text)) {
        if !count.is_empty() {
            sheet.body.title = format!("{}  {count}", sheet.body.title);
        }
        return;
    }
    let name = near.file_name().unwrap_or(near.as_os_str());
    let name = name.to_string_lossy();
    sheet.title(&name, Shape::Name, &secrets::find(&name));
    sheet.body.title = format!("…/{}  {count}", sheet.body.title);
}

/// Files that decide what will run are a danger by their place.
fn written(sheet: &mut Sheet, request: &Request, field: &str, texts: &[&str]) {
    let Some(named) = request.input.get(field).and_then(Value::as_str) else {
        return;
    };
    judge_places(sheet, request, named, |path| danger::written(path, texts));
}

/// A file is judged by its name and by where links really lead.
fn judge_places(
    sheet: &mut Sheet,
    request: &Request,
    named: &str,
    judge: impl Fn(&str) -> Option<Danger>,
) {
    let resolved = path::resolve(&request.origin.cwd, named);
    let real = match &request.real {
        RealPath::Known { path, .. } => path.to_string_lossy(),
        RealPath::Unasked | RealPath::Unknown => "".into(),
    };
    let found = [&*resolved.to_string_lossy(), named, &real]
        .into_iter()
        .find_map(judge);
    if let Some(danger) = found {
        sheet.beware(danger);
    }
}
