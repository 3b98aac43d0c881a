//! From `docs/figures.json` to what people see: the plot and the tables in both
//! READMEs. Measures nothing; a test draws them again and compares.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use nod::for_tests::text::{Lang, Text};
use serde_json::Value;

const BEGIN: &str = "<!-- figures: written by `cargo bench --bench figures` -->\n";
const END: &str = "<!-- /figures -->";

/// Every file that follows from the figures, with what belongs into it.
pub(crate) fn drawn(root: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let text = std::fs::read_to_string(root.join("docs/figures.json"))?;
    let figures = Figures(serde_json::from_str(&text)?);
    let mut files = vec![(root.join("docs/figures.svg"), figures.plot())];
    for (name, lang) in [("README.md", Lang::En), ("docs/README.zh-CN.md", Lang::Zh)] {
        let path = root.join(name);
        let page = std::fs::read_to_string(&path)?;
        let parts = page.split_once(BEGIN).and_then(|(before, rest)| {
            let (_, after) = rest.split_once(END)?;
            Some((before, after))
        });
        let (before, after) = parts.with_context(|| format!("no place for figures in {name}"))?;
        let page = format!("{before}{BEGIN}{}{END}{after}", figures.tables(lang));
        files.push((path, page));
    }
    Ok(files)
}

struct Figures(Value);

/// The clients that did the same work, in the order they are shown.
static CLIENTS: [(&str, Text); 4] = [
    ("nod", Text::new("nod", "nod")),
    ("floor", Text::new("最小 Rust 客户端", "least Rust client")),
    ("node", Text::new("Node SDK", "Node SDK")),
    ("python", Text::new("Python SDK", "Python SDK")),
];

/// What they are compared by, with the titles of the plot.
static COMPARED: [(&str, Text); 6] = [
    ("tap.p50", Text::new("点击 → 回执，p50", "tap → toast, p50")),
    ("tap.p99", Text::new("点击 → 回执，p99", "tap → toast, p99")),
    (
        "rate",
        Text::new("每秒点击数，64 个并发", "taps/s, 64 in flight"),
    ),
    ("cpu", Text::new("每次点击的 CPU 时间", "CPU per tap")),
    ("idle", Text::new("空闲内存", "idle memory")),
    ("start", Text::new("启动 → 已连接", "start → connected")),
];

impl Figures {
    fn get(&self, id: &str) -> Option<&Value> {
        let all = self.0["figures"].as_array()?;
        all.iter().find(|figure| figure["id"] == id)
    }

    fn number(&self, id: &str) -> Option<f64> {
        self.get(id)?["measured"].as_f64()
    }

    /// A figure with its unit, or a dash for what was not measured.
    fn text(&self, id: &str) -> String {
        let Some(measured) = self.number(id) else {
            return "–".to_owned();
        };
        let unit = self.get(id).and_then(|figure| figure["unit"].as_str());
        let number = short(measured);
        match unit {
            None | Some("") => number,
            Some(unit) => format!("{number} {unit}"),
        }
    }

    /// A figure, marked if it misses what it must reach.
    fn judged(&self, id: &str) -> String {
        let missed = self.get(id).is_some_and(|of| of["reached"] == "MISSED");
        self.text(id) + if missed { " ✗" } else { "" }
    }

    fn tables(&self, lang: Lang) -> String {
        let mut text = String::from("\n| |");
        for (_, name) in &CLIENTS {
            let _ = write!(text, " {} |", name.get(lang));
        }
        text.push_str("\n|---|--:|--:|--:|--:|\n");
        for (id, title) in &COMPARED {
            let _ = write!(text, "| {} |", title.get(lang));
            for (key, _) in &CLIENTS {
                let _ = write!(text, " {} |", self.text(&format!("{id}.{key}")));
            }
            text.push('\n');
        }
        let heads = Text::new(
            "\n| 仅 nod | 实测 | 上限（✗ 超出） |\n|---|--:|--:|\n",
            "\n| nod alone | measured | at most (✗ exceeded) |\n|---|--:|--:|\n",
        );
        text.push_str(heads.get(lang));
        for (ids, what) in &ALONE {
            let join = |texts: Vec<String>| texts.join(" / ");
            let measured = join(ids.iter().map(|id| self.judged(id)).collect());
            let must = ids.iter().filter_map(|id| self.get(id)?["must"].as_f64());
            let must = join(must.map(short).collect());
            let _ = writeln!(text, "| {} | {measured} | {must} |", what.get(lang));
        }
        let machine = self.0["machine"].as_str().unwrap_or_default();
        let _ = write!(text, "\n{machine}\n\n");
        text
    }

    /// Small panels, each with its own scale.
    fn plot(&self) -> String {
        const WIDTH: usize = 460;
        const HEIGHT: usize = 136;
        let clients = CLIENTS.each_ref().map(|(key, name)| (*key, &*name.en));
        let hooks = [
            ("nod", "nod hook"),
            ("nothing", "/bin/true"),
            ("python", "Python"),
            ("bash", "bash + socat"),
        ];
        let mut panels: Vec<_> = COMPARED
            .iter()
            .filter(|(id, _)| *id != "tap.p99")
            .map(|(id, title)| (*id, &*title.en, clients))
            .collect();
        panels.push(("hook", "one hook call, without the wait", hooks));
        let rows = panels.len().div_ceil(2);
        let (width, height) = (2 * WIDTH, rows * HEIGHT + 12);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        for (n, (id, title, bars)) in panels.into_iter().enumerate() {
            let (x, y) = (n % 2 * WIDTH, n / 2 * HEIGHT);
            let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">");
            self.panel(&mut svg, id, title, &bars);
            svg.push_str("</g>\n");
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn panel(&self, svg: &mut String, id: &str, title: &str, bars: &[(&str, &str)]) {
        const LEFT: usize = 136;
        const LONGEST: f64 = 220.0;
        let better = if id == "rate" { "longer" } else { "shorter" };
        let _ = writeln!(
            svg,
            "<text x=\"14\" y=\"30\" font-weight=\"bold\" fill=\"#1f2329\">{title}\
             <tspan font-weight=\"normal\" fill=\"#8f959e\"> ({better} is better)</tspan></text>"
        );
        let known = |key: &str| self.number(&format!("{id}.{key}"));
        let most = bars.iter().filter_map(|(key, _)| known(key));
        let most = most.fold(f64::MIN_POSITIVE, f64::max);
        for (row, (key, name)) in bars.iter().enumerate() {
            let y = 42 + row * 22;
            let length = known(key).map_or(0.0, |value| (value / most * LONGEST).max(1.0));
            let colour = if *key == "nod" { "#3370ff" } else { "#bbbfc4" };
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#1f2329\">{name}</text>\
                 <rect x=\"{LEFT}\" y=\"{y}\" width=\"{length:.1}\" height=\"15\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{}\" fill=\"#646a73\">{}</text>",
                LEFT - 8,
                y + 12,
                136.0 + length + 6.0,
                y + 12,
                self.text(&format!("{id}.{key}")),
            );
        }
    }
}

/// What has no rival: ids that share a row, and its words.
static ALONE: [(&[&str], Text); 12] = [
    (
        &["decide.p50", "decide.p99"],
        Text::new(
            "点击 → 决定已落盘、hook 已收到、回执已写出，p50 / p99",
            "tap → decision on disk, with its hook, and the toast written, p50 / p99",
        ),
    ),
    (
        &["hook.bar", "hook.mib.bar", "hook.own"],
        Text::new(
            "`nod hook` 自身耗时；内存，及其中不与其他进程共享的部分",
            "`nod hook`: its own time; its memory, and what of it is not shared",
        ),
    ),
    (
        &["hook.python", "hook.bash"],
        Text::new(
            "同样一次调用：Python / bash 客户端",
            "the same call by a Python / a bash client",
        ),
    ),
    (
        &["read.with", "read.without", "read"],
        Text::new(
            "无人被问的工具调用（如 Read）之后的 hook：有 daemon / 没有 / 倍数",
            "the hook after a tool that asks nobody (a Read): daemon / none / times",
        ),
    ),
    (
        &["codex.tap.p50", "codex.tap.p99"],
        Text::new(
            "点击 → Codex 收到答复，p50 / p99",
            "tap → Codex has its answer, p50 / p99",
        ),
    ),
    (
        &["codex.mib", "codex.cpu", "codex.cpu.own"],
        Text::new(
            "跟随 Codex 时的空闲开销，与不跟随相比：内存 / CPU；CPU",
            "idle beside Codex, over without: memory / CPU; its CPU",
        ),
    ),
    (
        &["waiting.1000", "waiting.10000"],
        Text::new(
            "1,000 / 10,000 个 hook 等待时的内存",
            "memory with 1,000 / 10,000 hooks waiting",
        ),
    ),
    (
        &["flat.decide", "flat.expire", "flat.status"],
        Text::new(
            "一万个等待中与寥寥几个时相比：点击 / 过期 / 状态",
            "tap / expiry / status among 10,000, over among few",
        ),
    ),
    (
        &["drop.p99"],
        Text::new("断线后恢复，p99", "back after a dropped connection, p99"),
    ),
    (
        &["silent.pending", "silent.idle"],
        Text::new(
            "发现对端失联并重连：有人等待时 / 空闲时",
            "silent peer noticed and replaced, somebody waiting / idle",
        ),
    ),
    (
        &["handshake.nod"],
        Text::new(
            "紧跟握手的 30 个事件中被应答的",
            "events right behind the handshake answered, of 30",
        ),
    ),
    (
        &["soak"],
        Text::new(
            "长时间连续点击中每次点击的内存增长",
            "memory growth per tap, in a soak",
        ),
    ),
];

/// As many digits as mean something, thousands apart.
pub(crate) fn short(number: f64) -> String {
    match number.abs() {
        n if n >= 1_000.0 => {
            let digits = format!("{number:.0}");
            let mut text = String::new();
            for (at, digit) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at).is_multiple_of(3) {
                    text.push(',');
                }
                text.push(digit);
            }
            text
        }
        n if n >= 100.0 => format!("{number:.0}"),
        n if n >= 10.0 || number.fract().abs() < f64::EPSILON => {
            let text = format!("{number:.1}");
            text.trim_end_matches(".0").to_owned()
        }
        _ => format!("{number:.2}"),
    }
}
