//! What was measured beside what must hold: one table, and the same as JSON.

use std::path::Path;

use serde_json::{Value, json};

use crate::page::short;

/// One figure. `must` and `aim` are the most it may be, or the least where
/// more is better.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    id: String,
    what: String,
    unit: &'static str,
    measured: f64,
    must: Option<f64>,
    aim: Option<f64>,
    more_is_better: bool,
}

impl Figure {
    pub(crate) fn new(id: &str, what: &str, unit: &'static str, measured: f64) -> Self {
        Self {
            id: id.to_owned(),
            what: what.to_owned(),
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
                "id": figure.id,
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
    std::fs::write(to.join("figures.json"), text)
}

fn round(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}
