//! What the daemon tells the book of its requests: asked, ended, found to have
//! ended otherwise.

use super::*;

impl World {
    pub(super) fn ask(&mut self, n: usize) {
        if self.book.is_none() {
            return self.later(500, Event::Ask(n));
        }
        self.disk.pending.insert(n, None);
        let (hold, patience) = (self.dice(2) * self.dice(1_000), 5_000 + self.dice(20_000));
        let sending = Sending {
            not_before: self.at(self.now + hold),
            latest: self.at(self.now + patience),
            needs_line: true,
            is_findable: true,
            sent_before: false,
        };
        let life = self.life;
        self.tell(life, |book, now| book.ask(&id(n), sending, (), now));
        let ends = self.dice(patience);
        self.later(ends, Event::End(n));
        if self.dice(3) == 0 {
            let runs = self.dice(ends + 1);
            self.later(runs, Event::Run(n));
        }
    }

    pub(super) fn end(&mut self, n: usize, wait: Duration) {
        let Some(book) = &mut self.book else { return };
        if !self.disk.pending.contains_key(&n) || book.decided(&id(n)).is_some() {
            return;
        }
        let face = Face {
            shown: format!("{n} ended").into(),
            kept: format!("{n} ended, kept").into(),
        };
        let now = self.start + Duration::from_millis(self.now);
        let key = book.end(settled(n), &face, now);
        self.write(Write::Ending { n, key, face, wait });
        if self.dice(3) == 0 {
            let when = self.dice(10_000);
            self.later(when, Event::Correct(n));
        }
    }

    pub(super) fn correct(&mut self, n: usize) {
        let Some(book) = &mut self.book else { return };
        if !self.disk.settled.contains_key(&n) {
            return;
        }
        let face = Face {
            shown: format!("{n} put right").into(),
            kept: format!("{n} put right, kept").into(),
        };
        book.redraw(&id(n), &face);
        let Some(key) = book.ending_key(&id(n)) else {
            return;
        };
        self.count("corrections");
        self.write(Write::Edit { n, key, face });
    }
}
