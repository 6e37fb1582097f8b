//! Messages to exchanges: requests wait in order, and each answer belongs to the oldest of them.

use super::aside::Place;
use super::{BIAS, MAX_OPEN, Tracker, aside, pick};
use crate::exchange::{Ledger, Message};
use crate::messages::{At, Close, Note, Side};
use crate::wait::Step;

/// The reader stops here because the connection became another protocol: nothing is wrong.
const SWITCHED: [&str; 2] = ["upgraded to another protocol", "tunnel behind a connect"];

impl Tracker {
    pub(super) fn read_notes(&mut self, ledger: &mut Ledger) {
        if ledger.notes.list.is_empty() {
            return;
        }
        let mut notes = std::mem::take(&mut ledger.notes.list);
        for note in notes.drain(..) {
            self.note(note, ledger);
        }
        ledger.notes.list = notes;
    }

    fn note(&mut self, note: Note, ledger: &mut Ledger) {
        match note {
            Note::Begin {
                side: Side::Client,
                at,
                ..
            } => self.open_exchange(at, ledger),
            Note::Begin {
                side: Side::Server,
                at,
                offset,
            } => {
                let (at, unseen) = self.seen(at);
                (self.interim, self.answered) = (false, false);
                if unseen || self.answers_lost || self.mixed.is_some() {
                    self.give_up_answered(offset as i64 - BIAS, ledger);
                    self.answers_lost = unseen;
                }
                match self.open.front_mut() {
                    Some(e) => {
                        self.unsolicited = false;
                        if let (false, Some((last, bytes))) =
                            (e.request.complete, self.messages.so_far(Side::Client))
                        {
                            // answered before it was whole; if it never is, this is what was asked
                            (e.request.last, e.request.bytes) = (last, bytes);
                        }
                        e.response = Some(Message {
                            first: at,
                            last: at,
                            ..Message::default()
                        });
                        if unseen {
                            e.cut_by = Some("gap");
                        }
                    }
                    None => self.unsolicited = true, // a greeting, or a time-out notice: nobody asked
                }
            }
            Note::Request { method, target } => {
                if let Some(e) = self.open.back_mut() {
                    (e.method, e.target) = (Some(method), Some(target));
                }
            }
            Note::Dialogue => {
                if let Some(e) = self.open.back_mut() {
                    e.dialogue = true;
                }
            }
            Note::Response { status, interim } => {
                self.interim = interim;
                if let (Some(e), false, false) = (self.open.front_mut(), interim, self.unsolicited) {
                    e.status = Some(status);
                }
            }
            Note::End { side, at, bytes } => self.message_end(side, at, bytes, None),
            Note::Cut { side, at, bytes, by } => self.message_end(side, at, bytes, Some(by)),
            Note::Lost { side, at, reason } if !SWITCHED.contains(&reason) => {
                self.answers_lost |= side == Side::Server;
                ledger.distrust("http", reason, at)
            }
            Note::Lost { .. } => {}
        }
    }

    /// Where a note stands, and whether the capture lacks the packet that would say it: then nobody can tell
    /// when it came, and the packet that showed the hole stands for it.
    fn seen(&self, at: At) -> (At, bool) {
        let unseen = at.frame == 0;
        let frame = if unseen { self.frame } else { at.frame };
        (At { frame, ..at }, unseen)
    }

    /// An answer begins at `offset`, behind some that may not be in the capture. Who asked anew with more acknowledged
    /// than before had been answered; and what a client had when it asked is not the answer to that.
    #[cold]
    fn give_up_answered(&mut self, offset: i64, ledger: &mut Ledger) {
        while let (Some(first), Some(next)) = (self.open.front(), self.open.get(1))
            && first.asked_at < next.asked_at
            && next.asked_at <= offset
            && let Some(mut lost) = self.open.pop_front()
        {
            lost.cut_by = Some("gap");
            self.finish(lost, ledger);
        }
        let still = |mixed: &i64| self.open.front().is_some_and(|first| first.asked_at == *mixed);
        self.mixed = self.mixed.filter(still);
    }

    fn open_exchange(&mut self, at: At, ledger: &mut Ledger) {
        let (at, unseen) = self.seen(at);
        if std::mem::take(&mut self.answered)
            && let Some(lost) = self.open.pop_back()
        {
            self.finish(lost, ledger);
        }
        self.answered = unseen && self.unasked;
        self.unasked = false;
        if self.open.len() >= MAX_OPEN
            && let Some(mut oldest) = self.open.pop_front()
        {
            ledger.distrust("http", "too many requests wait; the oldest is given up", at);
            oldest.cut_by = Some("gap");
            self.finish(oldest, ledger);
        }
        if let Some(step) = self.paused.take().filter(|_| self.open.is_empty()) {
            self.pause(step, ledger);
        }
        let mut exchange = ledger.spare.pop().unwrap_or_default();
        exchange.reset(ledger.next_id, self.stream, self.exchanges, self.pair);
        // a request that was lost on its way was sent no later than the packet that showed its absence
        exchange.request.first = self.shown.filter(|shown| shown.frame < at.frame).unwrap_or(at);
        exchange.request.last = at;
        exchange.asked_at = self.client_ack;
        exchange.cut_by = unseen.then_some("gap");
        self.open.push_back(exchange);
        ledger.next_id += 1;
        self.exchanges += 1;
    }

    /// One short pause may be a busy host's; it has a row when another one comes.
    #[cold]
    fn pause(&mut self, step: Step, ledger: &mut Ledger) {
        let place = self.place();
        if !std::mem::replace(&mut self.pauses, true) && aside::is_short(&step) {
            self.lone_pause = Some(Box::new((step, place.index)));
            return;
        }
        if let Some(first) = self.lone_pause.take() {
            let (first, index) = *first;
            aside::pause(first, Place { index, ..place }, ledger);
        }
        aside::pause(step, place, ledger);
    }

    fn message_end(&mut self, side: Side, at: At, bytes: u64, cut: Option<Close>) {
        let end_offset = pick(&mut self.assemblers, side)
            .next()
            .map_or(0, |n| n as i64 - BIAS);
        let (at, unseen) = self.seen(at);
        match side {
            Side::Client => {
                if let Some(e) = self.open.iter_mut().rev().find(|e| !e.request.complete) {
                    e.request.last = at;
                    e.request.last = e.request.newest_copy().unwrap_or(at);
                    e.request.bytes = bytes;
                    e.request.end_offset = end_offset;
                    e.request.complete = cut.is_none();
                    if unseen {
                        e.cut_by = Some("gap");
                    }
                }
            }
            Side::Server if self.interim || self.unsolicited => {
                if self.interim
                    && let Some(e) = self.open.front_mut()
                {
                    e.response = None; // 1xx: the answer is still to come
                }
                self.unasked |= self.unsolicited;
                (self.interim, self.unsolicited) = (false, false);
            }
            Side::Server => {
                let Some(mut e) = self.open.pop_front() else {
                    return;
                };
                if let Some(r) = &mut e.response {
                    r.last = at;
                    r.bytes = bytes;
                    r.complete = cut.is_none();
                    r.end_offset = end_offset;
                }
                if self.answers_lost
                    && let Some(next) = self.open.front()
                    && next.request.first.frame < at.frame
                {
                    // in what was lost may be its end, and the answer to who asked meanwhile or together with it
                    self.mixed = Some(e.asked_at);
                }
                e.cut_by = if unseen || self.mixed == Some(e.asked_at) {
                    Some("gap")
                } else {
                    e.cut_by.or(cut.map(cut_word))
                };
                e.complete = e.cut_by.is_none();
                e.protocol = self.messages.protocol();
                self.settling.push_back(e);
            }
        }
    }

    /// A side ended. After it, what is still open on a server's side will not be answered.
    pub(super) fn close(&mut self, side: Side, at: At, how: Close, ledger: &mut Ledger) {
        if std::mem::replace(pick(&mut self.closed, side), true) && how == Close::Fin {
            return;
        }
        self.messages.close(side, at, how, &mut ledger.notes);
        self.read_notes(ledger);
        if side == Side::Server {
            while let Some(mut e) = self.open.pop_front() {
                e.cut_by.get_or_insert(cut_word(how));
                self.finish(e, ledger);
            }
        }
        if how != Close::Fin {
            while !self.settling.is_empty() {
                self.settle_first(None, ledger);
            }
            for (sender, pool) in self.senders.iter_mut().zip(self.pools) {
                ledger.pools.refute(pool, sender.last_refutations());
            }
        }
    }
}

fn cut_word(how: Close) -> &'static str {
    match how {
        Close::Fin => "fin",
        Close::Rst => "rst",
        Close::CaptureEnd => "capture_end",
    }
}
