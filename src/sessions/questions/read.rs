//! How a tap, a submitted form or a text becomes an answer, or the problem to
//! tell.

use super::{
    Ask, Fields, Format, KEEP_PLANNING, MAX_ANSWER, Question, QuestionAnswer, QuestionKind,
    QuestionOption, QuestionTap, Reply, ReplyOutcome, ReplyProblem, field, option_index,
    other_field,
};

impl Ask {
    pub fn read(&self, reply: &Reply) -> Result<ReplyOutcome, ReplyProblem> {
        match reply {
            Reply::Tap(QuestionTap::Decline)
            | Reply::Form {
                button: Some(QuestionTap::Decline),
                ..
            } => Ok(ReplyOutcome::Declined),
            Reply::Tap(tap) => match self.questions.as_slice() {
                [question] => Ok(ReplyOutcome::Answered(vec![question.tapped(*tap, None)?])),
                _ => Err(ReplyProblem::NotThisQuestion),
            },
            Reply::Form { button, fields } => self.submitted(*button, fields),
            Reply::Text(text) => self.typed(text).map(ReplyOutcome::Answered),
        }
    }

    fn submitted(
        &self,
        button: Option<QuestionTap>,
        fields: &Fields,
    ) -> Result<ReplyOutcome, ReplyProblem> {
        if let ([question], Some(tap)) = (self.questions.as_slice(), button) {
            let words = fields
                .text(&field(0))
                .or_else(|| fields.text(&other_field(0)));
            return Ok(ReplyOutcome::Answered(vec![question.tapped(tap, words)?]));
        }
        let answers = self
            .questions
            .iter()
            .enumerate()
            .map(|(i, question)| question.filled(i, fields).map_err(|why| self.which(i, why)));
        Ok(ReplyOutcome::Answered(answers.collect::<Result<_, _>>()?))
    }

    /// Says of which question, where there are several, an answer is missing.
    fn which(&self, index: usize, why: ReplyProblem) -> ReplyProblem {
        match why {
            ReplyProblem::Empty | ReplyProblem::YesOrNo | ReplyProblem::PickOne { .. }
                if self.questions.len() > 1 =>
            {
                ReplyProblem::Unanswered { number: index + 1 }
            }
            other => other,
        }
    }

    fn typed(&self, text: &str) -> Result<Vec<QuestionAnswer>, ReplyProblem> {
        if text.len() > MAX_ANSWER {
            return Err(ReplyProblem::TooLong);
        }
        if let [question] = self.questions.as_slice() {
            return Ok(vec![question.typed(text)?]);
        }
        let lines: Vec<_> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        if lines.len() != self.questions.len() {
            return Err(ReplyProblem::OneLineEach {
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
    fn tapped(
        &self,
        tap: QuestionTap,
        words: Option<&str>,
    ) -> Result<QuestionAnswer, ReplyProblem> {
        match (&self.kind, tap) {
            (QuestionKind::Confirm, QuestionTap::Yes) => Ok(QuestionAnswer::Yes),
            (QuestionKind::Confirm, QuestionTap::No) => Ok(QuestionAnswer::No),
            (QuestionKind::Choice { options, .. }, QuestionTap::Option(index)) => {
                if index < options.len() {
                    Ok(QuestionAnswer::Picked {
                        options: vec![index],
                        other: None,
                    })
                } else {
                    Err(ReplyProblem::NoSuchOption {
                        number: index + 1,
                        of: options.len(),
                    })
                }
            }
            (QuestionKind::Plan { .. }, QuestionTap::ApprovePlan) => {
                Ok(QuestionAnswer::PlanApproved {
                    accept_edits: false,
                })
            }
            (
                QuestionKind::Plan {
                    accept_edits: true, ..
                },
                QuestionTap::ApprovePlanAndEdits,
            ) => Ok(QuestionAnswer::PlanApproved { accept_edits: true }),
            (QuestionKind::Plan { .. }, QuestionTap::RevisePlan) => {
                let text = words.unwrap_or(KEEP_PLANNING);
                Ok(QuestionAnswer::PlanRevised(text.to_owned()))
            }
            _ => Err(ReplyProblem::NotThisQuestion),
        }
    }

    fn filled(&self, index: usize, fields: &Fields) -> Result<QuestionAnswer, ReplyProblem> {
        let value = fields.text(&field(index));
        match &self.kind {
            QuestionKind::Confirm => match value.and_then(QuestionTap::parse) {
                Some(QuestionTap::Yes) => Ok(QuestionAnswer::Yes),
                Some(QuestionTap::No) => Ok(QuestionAnswer::No),
                _ => Err(ReplyProblem::YesOrNo),
            },
            QuestionKind::Choice {
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
                    picked.push(found.ok_or(ReplyProblem::NotThisQuestion)?);
                }
                picked.sort_unstable();
                picked.dedup();
                match (picked.len() + usize::from(own.is_some()), multi) {
                    (0, _) if *optional => Ok(QuestionAnswer::Skipped),
                    (0, _) => Err(ReplyProblem::PickOne { of: options.len() }),
                    // Words of one's own stand against the select's choice.
                    (2.., false) if own.is_none() => Err(ReplyProblem::OnlyOne),
                    (2.., false) => Ok(QuestionAnswer::Picked {
                        options: Vec::new(),
                        other: own.map(str::to_owned),
                    }),
                    _ => Ok(QuestionAnswer::Picked {
                        options: picked,
                        other: own.map(str::to_owned),
                    }),
                }
            }
            QuestionKind::Text { format, optional } => match value {
                Some(text) => format.read(text),
                None if *optional => Ok(QuestionAnswer::Skipped),
                None => Err(ReplyProblem::Empty),
            },
            QuestionKind::Plan { .. } => Err(ReplyProblem::NotThisQuestion),
        }
    }

    fn typed(&self, text: &str) -> Result<QuestionAnswer, ReplyProblem> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ReplyProblem::Empty);
        }
        match &self.kind {
            QuestionKind::Confirm => yes_or_no(text),
            QuestionKind::Choice {
                options,
                multi,
                other,
                ..
            } => pick(options, *multi, *other, text),
            QuestionKind::Text { format, .. } => format.read(text),
            // Only a tap approves.
            QuestionKind::Plan { .. } => Ok(QuestionAnswer::PlanRevised(text.to_owned())),
        }
    }
}

impl Format {
    fn read(self, text: &str) -> Result<QuestionAnswer, ReplyProblem> {
        if text.len() > MAX_ANSWER {
            return Err(ReplyProblem::TooLong);
        }
        let (number, range) = match self {
            Self::Any => return Ok(QuestionAnswer::Text(text.to_owned())),
            Self::Number(range) => {
                let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                (number.ok_or(ReplyProblem::NotANumber)?, range)
            }
            Self::Integer(range) => {
                if text.parse::<i64>().is_err() {
                    return Err(ReplyProblem::NotAnInteger);
                }
                let number = text.parse().map_err(|_| ReplyProblem::NotAnInteger)?;
                (number, range)
            }
        };
        if !range.holds(number) {
            return Err(ReplyProblem::OutOfRange(range));
        }
        Ok(QuestionAnswer::Text(text.to_owned()))
    }
}

/// Whole words only: a sentence that holds a "yes" is not a yes.
fn yes_or_no(text: &str) -> Result<QuestionAnswer, ReplyProblem> {
    match text.to_lowercase().as_str() {
        "是" | "确认" | "确定" | "同意" | "可以" | "好" | "好的" | "yes" | "y" | "ok" => {
            Ok(QuestionAnswer::Yes)
        }
        "否" | "不" | "不是" | "取消" | "不同意" | "不可以" | "no" | "n" | "cancel" => {
            Ok(QuestionAnswer::No)
        }
        _ => Err(ReplyProblem::YesOrNo),
    }
}

fn pick(
    options: &[QuestionOption],
    multi: bool,
    other: bool,
    text: &str,
) -> Result<QuestionAnswer, ReplyProblem> {
    if let Some(index) = by_label(options, text).or_else(|| numbered(options, text)) {
        return Ok(QuestionAnswer::Picked {
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
        None if picked.len() > 1 && !multi => Err(ReplyProblem::OnlyOne),
        None if !picked.is_empty() => Ok(QuestionAnswer::Picked {
            options: picked,
            other: None,
        }),
        // A digit out of range is a slip; a longer number may well be an answer.
        Some(Some(number)) if number < 10 || !other => Err(ReplyProblem::NoSuchOption {
            number,
            of: options.len(),
        }),
        _ if other => Ok(QuestionAnswer::Picked {
            options: Vec::new(),
            other: Some(text.to_owned()),
        }),
        _ => Err(ReplyProblem::PickOne { of: options.len() }),
    }
}

/// "1. `SQLite`": a number and the words of that very option.
fn numbered(options: &[QuestionOption], text: &str) -> Option<usize> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, rest) = text.split_at(end);
    let index = number.parse::<usize>().ok()?.checked_sub(1)?;
    let marks = |c: char| c.is_whitespace() || ".．。、)）:：".contains(c);
    let label = rest.trim_start_matches(marks);
    let is_marked = label.len() < rest.len();
    (is_marked && by_label(options, label) == Some(index)).then_some(index)
}

fn by_label(options: &[QuestionOption], text: &str) -> Option<usize> {
    let wanted = text.trim().to_lowercase();
    let mut found = options
        .iter()
        .enumerate()
        .filter(|(_, choice)| choice.label.trim().to_lowercase() == wanted);
    let (index, _) = found.next()?;
    found.next().is_none().then_some(index)
}
