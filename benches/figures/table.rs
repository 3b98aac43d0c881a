//! What was measured beside what must hold: one table, the same as JSON, and a
//! plot.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

/// One figure. `must` and `aim` are the most it may be, or the least where
/// more is better.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) measured: f64,
    pub(crate) must: Option<f64>,
    pub(crate) aim: Option<f64>,
    pub(crate) more_is_better: bool,
}

impl Figure {
    pub(crate) fn new(what: impl Into<String>, unit: &'static str, measured: f64) -> Self {
        Self {
            what: what.into(),
            unit,
            measured,
            must: None,
            aim: None,
            more_is_better: false,
        }
    }

    pub(crate) fn at_most(mut self, must: f64, aim: f64) -> Self {
        (self.must, self.aim) = (Some(must), Some(aim));
        self
    }

    pub(crate) fn at_least(mut self, must: f64, aim: f64) -> Self {
        self.more_is_better = true;
        self.at_most(must, aim)
    }

    fn reaches(&self, bar: f64) -> bool {
        if self.more_is_better {
            self.measured >= bar
        } else {
            self.measured <= bar
        }
    }

    pub(crate) fn verdict(&self) -> &'static str {
        match (self.must, self.aim) {
            (_, Some(aim)) if self.reaches(aim) => "aim",
            (Some(must), _) if self.reaches(must) => "must",
            (Some(_), _) => "MISSED",
            _ => "",
        }
    }
}

fn short(number: f64) -> String {
    match number.abs() {
        n if n >= 1_000.0 => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

pub(crate) fn print(figures: &[Figure]) {
    println!(
        "{:<58} {:>12} {:>10} {:>10}  reached",
        "", "measured", "must", "aim"
    );
    for figure in figures {
        let bar = |bar: Option<f64>| bar.map(short).unwrap_or_default();
        let measured = format!("{} {}", short(figure.measured), figure.unit);
        println!(
            "{:<58} {measured:>12} {:>10} {:>10}  {}",
            figure.what,
            bar(figure.must),
            bar(figure.aim),
            figure.verdict()
        );
    }
}

pub(crate) fn write(figures: &[Figure], machine: &str, to: &Path) -> std::io::Result<()> {
    let rows: Vec<Value> = figures
        .iter()
        .map(|figure| {
            json!({
                "what": figure.what,
                "measured": round(figure.measured),
                "unit": figure.unit,
                "must": figure.must,
                "aim": figure.aim,
                "reached": figure.verdict(),
            })
        })
        .collect();
    let all = json!({"machine": machine, "figures": rows});
    let mut text = serde_json::to_string_pretty(&all).expect("plain JSON");
    text.push('\n');
    std::fs::write(to.join("figures.json"), text)?;
    std::fs::write(to.join("figures.svg"), plot(figures))
}

fn round(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

/// Bars for everything that has a bar to reach, as a share of what must hold:
/// shorter is better, and the line is the limit.
fn plot(figures: &[Figure]) -> String {
    const ROW: usize = 26;
    const LEFT: f64 = 430.0;
    const LIMIT: f64 = 300.0;
    let judged: Vec<_> = figures.iter().filter(|f| f.must.is_some()).collect();
    let height = 60 + judged.len() * ROW;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"{height}\" \
         viewBox=\"0 0 900 {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"900\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"24\" font-size=\"15\" fill=\"#1f2329\">\
         nod: share of what must hold (shorter is better)</text>\n"
    );
    for (row, figure) in judged.iter().enumerate() {
        let must = figure.must.unwrap_or(1.0);
        let share = if figure.more_is_better {
            must / figure.measured.max(f64::MIN_POSITIVE)
        } else {
            figure.measured / must.max(f64::MIN_POSITIVE)
        };
        let (y, width) = (44 + row * ROW, (share.min(1.5) * LIMIT).max(1.0));
        let colour = match figure.verdict() {
            "aim" => "#2ea121",
            "must" => "#3370ff",
            _ => "#f54a45",
        };
        let measured = format!("{} {}", short(figure.measured), figure.unit);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#1f2329\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"16\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{}\" fill=\"#646a73\">{measured}</text>",
            LEFT - 8.0,
            y + 13,
            figure.what,
            LEFT + width + 6.0,
            y + 13,
        );
    }
    let end = LEFT + LIMIT;
    let _ = writeln!(
        svg,
        "<line x1=\"{end}\" y1=\"36\" x2=\"{end}\" y2=\"{}\" stroke=\"#1f2329\" \
         stroke-dasharray=\"4 3\"/>\n</svg>",
        height - 10
    );
    svg
}
