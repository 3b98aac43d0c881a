//! What goes wrong in the model: lines break or fall silent, the daemon dies and
//! starts again from its disk.

use super::*;

impl World {
    pub(super) fn trouble(&mut self, event: &Event) {
        match event {
            Event::Cut => {
                if let Some((_, silent)) = self.line {
                    self.count("lines cut");
                    let heard = self.now.saturating_sub(self.chance.below(5_000));
                    self.lose(silent.unwrap_or(heard));
                }
            }
            Event::FallSilent => {
                if let Some((line, None)) = self.line {
                    self.count("lines silent");
                    self.line = Some((line, Some(self.now)));
                    let noticed = self.dice(DEAF);
                    self.later(noticed, Event::Notice(line));
                }
            }
            Event::Notice(silent) => {
                if let Some((of, Some(since))) = self.line
                    && of == *silent
                {
                    self.lose(since);
                }
            }
            Event::Up(life) => {
                if *life == self.life && self.book.is_some() && self.line.is_none() {
                    self.lines += 1;
                    self.connects += 1;
                    self.line = Some((self.lines, None));
                    let view = self.view();
                    self.tell(*life, |book, now| book.line(view, now));
                }
            }
            Event::Crash => {
                if self.book.take().is_some() {
                    self.count("crashes");
                    self.line = None;
                    self.life += 1;
                    let (down, life) = (self.dice(2_000), self.life);
                    self.later(down, Event::Start(life));
                }
            }
            other => unreachable!("{other:?} is no trouble"),
        }
    }

    pub(super) fn lose(&mut self, heard: u64) {
        self.line = None;
        self.lost_heard = Some(heard);
        let (view, life, back) = (self.view(), self.life, self.dice(4_000));
        self.tell(life, |book, now| book.line(view, now));
        self.later(back, Event::Up(life));
    }

    pub(super) fn starts(&mut self, life: u64) {
        (self.connects, self.lost_heard) = (0, None);
        self.patching.clear();
        let now = self.at(self.now);
        let mut book = CardBook::new(self.view(), Lang::En, now);
        for (key, row) in &self.disk.outbox {
            match key {
                CardKey::Message(message) => {
                    let kept = row.face.kept.clone();
                    book.restore_face(message.clone(), row.version, kept);
                    let left = Left {
                        message: message.clone(),
                        version: row.version,
                        made: row.made,
                    };
                    book.restore_edit(left, now);
                }
                CardKey::Sending(id) => {
                    let kept = row.face.kept.clone();
                    book.restore_nameless(id, kept.into(), Duration::ZERO, now);
                }
            }
        }
        let mut asked = Vec::new();
        for (n, message) in &self.disk.pending {
            book.restore(&id(*n), message.as_ref(), Duration::ZERO, (), now);
            if message.is_none() {
                let sending = Sending {
                    not_before: now,
                    latest: now + Duration::from_secs(30),
                    needs_line: true,
                    is_findable: true,
                    sent_before: true,
                };
                book.ask(&id(*n), sending, (), now);
            }
            asked.push(*n);
        }
        self.book = Some(book);
        for n in asked {
            let when = self.dice(20_000);
            self.later(when, Event::End(n));
        }
        let up = self.dice(3_000);
        self.later(up, Event::Up(life));
    }
}
