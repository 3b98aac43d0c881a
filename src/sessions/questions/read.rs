//! How a tap, a submitted form or a text becomes an answer, or the problem to
//! tell.

use super::{
    Answer, Ask, Choice, Fields, Format, KEEP_PLANNING, Kind, MAX_ANSWER, Outcome, Problem,
    Question, Reply, Tap, field, option_index, other_field,
};

impl Ask {
    pub fn read(&self, reply: &Reply) -> Result<Outcome, Problem> {
        match reply {
            Reply::Tap(Tap::Decline)
            | Reply::Form {
                button: Some(Tap::Decline),
                ..
            } => Ok(Outcome::Declined),
            Reply::Tap(tap) => match self.questions.as_slice() {
                [question] => Ok(Outcome::Answered(vec![question.tapped(*tap, None)?])),
                _ => Err(Problem::NotThisQuestion),
            },
            Reply::Form { button, fields } => self.submitted(*button, fields),
            Reply::Text(text) => self.typed(text).map(Outcome::Answered),
        }
    }

    fn submitted(&self, button: Option<Tap>, fields: &Fields) -> Result<Outcome, Problem> {
        if let ([question], Some(tap)) = (self.questions.as_slice(), button) {
            let words = fields
                .text(&field(0))
                .or_else(|| fields.text(&other_field(0)));
            return Ok(Outcome::Answered(vec![question.tapped(tap, words)?]));
        }
        let answers = self
            .questions
            .iter()
            .enumerate()
            .map(|(i, question)| question.filled(i, fields).map_err(|why| self.which(i, why)));
        Ok(Outcome::Answered(answers.collect::<Result<_, _>>()?))
    }

    /// Says of which question, where there are several, an answer is missing.
    fn which(&self, index: usize, why: Problem) -> Problem {
        match why {
            Problem::Empty | Problem::YesOrNo | Problem::PickOne { .. }
                if self.questions.len() > 1 =>
            {
                Problem::Unanswered { number: index + 1 }
            }
            other => other,
        }
    }

    fn typed(&self, text: &str) -> Result<Vec<Answer>, Problem> {
        if text.len() > MAX_ANSWER {
            return Err(Problem::TooLong);
        }
        if let [question] = self.questions.as_slice() {
            return Ok(vec![question.typed(text)?]);
        }
        let lines: Vec<_> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        if lines.len() != self.questions.len() {
            return Err(Problem::OneLineEach {
                questions: self.questions.len(),
            });
        }
        self.questions
            .iter()
            .zip(lines)
            .map(|(question, line)| question.typed(line))
            .collect()
    }
}

impl Question {
    fn tapped(&self, tap: Tap, words: Option<&str>) -> Result<Answer, Problem> {
        match (&self.kind, tap) {
            (Kind::Confirm, Tap::Yes) => Ok(Answer::Yes),
            (Kind::Confirm, Tap::No) => Ok(Answer::No),
            (Kind::Choice { options, .. }, Tap::Option(index)) => {
                if index < options.len() {
                    Ok(Answer::Picked {
                        options: vec![index],
                        other: None,
                    })
                } else {
                    Err(Problem::NoSuchOption {
                        number: index + 1,
                        of: options.len(),
                    })
                }
            }
            (Kind::Plan { .. }, Tap::ApprovePlan) => Ok(Answer::PlanApproved {
                accept_edits: false,
            }),
            (Kind::Plan { .. }, Tap::ApprovePlanAndEdits) => {
                Ok(Answer::PlanApproved { accept_edits: true })
            }
            (Kind::Plan { .. }, Tap::RevisePlan) => {
                let text = words.unwrap_or(KEEP_PLANNING);
                Ok(Answer::PlanRevised(text.to_owned()))
            }
            _ => Err(Problem::NotThisQuestion),
        }
    }

    fn filled(&self, index: usize, fields: &Fields) -> Result<Answer, Problem> {
        let value = fields.text(&field(index));
        match &self.kind {
            Kind::Confirm => match value.and_then(Tap::parse) {
                Some(Tap::Yes) => Ok(Answer::Yes),
                Some(Tap::No) => Ok(Answer::No),
                _ => Err(Problem::YesOrNo),
            },
            Kind::Choice {
                options,
                multi,
                other,
                optional,
            } => {
                let own = fields.text(&other_field(index)).filter(|_| *other);
                let mut picked = Vec::new();
                for value in &fields.choices(&field(index)) {
                    if value.is_empty() {
                        continue;
                    }
                    let found = option_index(value).filter(|i| *i < options.len());
                    picked.push(found.ok_or(Problem::NotThisQuestion)?);
                }
                picked.sort_unstable();
                picked.dedup();
                match (picked.len() + usize::from(own.is_some()), multi) {
                    (0, _) if *optional => Ok(Answer::Skipped),
                    (0, _) => Err(Problem::PickOne { of: options.len() }),
                    // Words of one's own stand against the select's choice.
                    (2.., false) if own.is_none() => Err(Problem::OnlyOne),
                    (2.., false) => Ok(Answer::Picked {
                        options: Vec::new(),
                        other: own.map(str::to_owned),
                    }),
                    _ => Ok(Answer::Picked {
                        options: picked,
                        other: own.map(str::to_owned),
                    }),
                }
            }
            Kind::Text { format, optional } => match value {
                Some(text) => format.read(text),
                None if *optional => Ok(Answer::Skipped),
                None => Err(Problem::Empty),
            },
            Kind::Plan { .. } => Err(Problem::NotThisQuestion),
        }
    }

    fn typed(&self, text: &str) -> Result<Answer, Problem> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Problem::Empty);
        }
        match &self.kind {
            Kind::Confirm => yes_or_no(text),
            Kind::Choice {
                options,
                multi,
                other,
                ..
            } => pick(options, *multi, *other, text),
            Kind::Text { format, .. } => format.read(text),
            Kind::Plan { .. } => Ok(match text.to_lowercase().as_str() {
                "批准" | "批准计划" | "同意" | "approve" | "yes" | "1" => {
                    Answer::PlanApproved {
                        accept_edits: false,
                    }
                }
                "批准并自动接受编辑" | "2" => Answer::PlanApproved { accept_edits: true },
                _ => Answer::PlanRevised(text.to_owned()),
            }),
        }
    }
}

impl Format {
    fn read(self, text: &str) -> Result<Answer, Problem> {
        if text.len() > MAX_ANSWER {
            return Err(Problem::TooLong);
        }
        match self {
            Self::Any => {}
            Self::Number => {
                let number: Option<f64> = text.parse().ok();
                if !number.is_some_and(f64::is_finite) {
                    return Err(Problem::NotANumber);
                }
            }
            Self::Integer => {
                if text.parse::<i64>().is_err() {
                    return Err(Problem::NotAnInteger);
                }
            }
        }
        Ok(Answer::Text(text.to_owned()))
    }
}

/// Whole words only: a sentence that holds a "yes" is not a yes.
fn yes_or_no(text: &str) -> Result<Answer, Problem> {
    match text.to_lowercase().as_str() {
        "是" | "确认" | "确定" | "同意" | "可以" | "好" | "好的" | "yes" | "y" | "ok" => {
            Ok(Answer::Yes)
        }
        "否" | "不" | "不是" | "取消" | "不同意" | "不可以" | "no" | "n" | "cancel" => {
            Ok(Answer::No)
        }
        _ => Err(Problem::YesOrNo),
    }
}

fn pick(options: &[Choice], multi: bool, other: bool, text: &str) -> Result<Answer, Problem> {
    if let Some(index) = by_label(options, text).or_else(|| numbered(options, text)) {
        return Ok(Answer::Picked {
            options: vec![index],
            other: None,
        });
    }
    let parts: Vec<&str> = text
        .split([',', '，', '、', ';', '；'])
        .flat_map(|part| {
            // "1 3" is two numbers; "In-process LRU" is one label.
            let numbers = part
                .split_whitespace()
                .all(|word| word.parse::<u8>().is_ok());
            if numbers {
                part.split_whitespace().collect()
            } else {
                vec![part.trim()]
            }
        })
        .filter(|part| !part.is_empty())
        .collect();
    let mut picked = Vec::new();
    let mut missing = None;
    for part in &parts {
        let number = part.parse::<usize>().ok();
        let named = by_label(options, part).or_else(|| numbered(options, part));
        match named.or_else(|| number?.checked_sub(1)) {
            Some(index) if index < options.len() => picked.push(index),
            _ => missing = missing.or(Some(number)),
        }
    }
    picked.sort_unstable();
    picked.dedup();
    match missing {
        None if picked.len() > 1 && !multi => Err(Problem::OnlyOne),
        None if !picked.is_empty() => Ok(Answer::Picked {
            options: picked,
            other: None,
        }),
        // A digit out of range is a slip; a longer number may well be an answer.
        Some(Some(number)) if number < 10 || !other => Err(Problem::NoSuchOption {
            number,
            of: options.len(),
        }),
        _ if other => Ok(Answer::Picked {
            options: Vec::new(),
            other: Some(text.to_owned()),
        }),
        _ => Err(Problem::PickOne { of: options.len() }),
    }
}

/// "1. `SQLite`": a number and the words of that very option.
fn numbered(options: &[Choice], text: &str) -> Option<usize> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, rest) = text.split_at(end);
    let index = number.parse::<usize>().ok()?.checked_sub(1)?;
    let marks = |c: char| c.is_whitespace() || ".．。、)）:：".contains(c);
    let label = rest.trim_start_matches(marks);
    let is_marked = label.len() < rest.len();
    (is_marked && by_label(options, label) == Some(index)).then_some(index)
}

fn by_label(options: &[Choice], text: &str) -> Option<usize> {
    let wanted = text.trim().to_lowercase();
    let mut found = options
        .iter()
        .enumerate()
        .filter(|(_, choice)| choice.label.trim().to_lowercase() == wanted);
    let (index, _) = found.next()?;
    found.next().is_none().then_some(index)
}
