//! Text to ids, part by part: ids are output as soon as nothing that follows can change them.
//!
//! 1. Bytes wait until it is settled which of them are special tokens ([`Specials::settled`]).
//! 2. The text between special tokens waits until its tokens are settled. Each algorithm knows the positions after which
//!    it starts afresh ([`Model::settled`]): the end of a piece or word, or a position that no merge crosses.
//! 3. At the end, the waiting text is encoded as the end of a text.
//!
//! Both stages look at their text again only once it has doubled, so an unsettled stretch costs at most twice its
//! length in total, however small the parts are.
//!
//! Time: encoding the whole text, and finding settled positions from the end of what is known. Space: the longest unsettled
//! stretch, and a constant.
//!
//! Deviations: none. A text may be longer than llama.cpp's 2 GiB; an unsettled stretch may not.
//!
//! [`Specials::settled`]: crate::encode::special::Specials::settled
//! [`Model::settled`]: crate::encode::model::Model::settled

use std::borrow::Borrow;

use crate::encode::model::progress::Progress;
use crate::encode::model::{Fragment, ModelScratch, Task};
use crate::encode::scratch::Scratch;
use crate::encode::sink::Sink;
use crate::encode::special::Item;
use crate::encoder::Encoder;
use crate::error::EncodeError;
use crate::text::unicode::utf8::{self, complete_len};
use crate::token::TokenId;
use crate::tokenizer::{EncodeOptions, MAX_TEXT, Tokenizer};
use crate::work::interrupt;
use crate::work::memory::{self, append};

/// How many bytes of a long part are taken at once.
const STEP: usize = 1 << 18;
/// A stage looks at the first bytes at once, and then again only after at least this many more.
const FEW: usize = 64;

/// Waiting text, and the length at which it is looked at again.
#[derive(Debug, Clone, Default)]
struct Waiting {
    text: Vec<u8>,
    goal: usize,
}

impl Waiting {
    fn is_due(&self) -> bool {
        self.text.len() >= self.goal.max(1)
    }

    fn drop_start(&mut self, len: usize) {
        self.text.drain(..len);
        self.goal = self.text.len() + self.text.len().max(FEW);
    }
}

/// Encodes a text that arrives part by part, with the ids of the whole.
///
/// # Examples
/// ```
/// use ggtok_core::vocab::{Definition, StringIndex};
/// use ggtok_core::{EncodeOptions, Tokenizer};
///
/// let (data, index) = StringIndex::concatenate(&["<unk>", "<s>", "</s>", "▁", "a", "▁a", "b"])?;
/// let scores = [0.0, 0.0, 0.0, -1.0, -2.0, -0.5, -2.0];
/// let definition = Definition {
///     model: "llama",
///     tokens: Some(index.view(&data)),
///     scores: Some(&scores),
///     ..Definition::default()
/// };
/// let tokenizer = Tokenizer::new(&definition)?;
///
/// let mut ids = Vec::new();
/// let mut stream = tokenizer.encoder().stream(EncodeOptions::default())?;
/// stream.push("a", &mut ids)?;
/// stream.push("b a", &mut ids)?;
/// stream.finish(&mut ids)?;
/// assert_eq!(ids, tokenizer.encode("ab a")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct StreamEncoder<T> {
    tokenizer: T,
    parse_special: bool,
    /// The token before the text, if it is not yet pushed, and the one after it.
    bos: Option<TokenId>,
    eos: Option<TokenId>,
    /// Text that may still become a special token, or has not been looked at.
    input: Waiting,
    /// The unsettled rest of the current fragment.
    fragment: Waiting,
    /// The progress of the current fragment; `None` if none has begun since the last special token.
    progress: Option<Progress>,
}

impl<T: Borrow<Tokenizer> + Clone> Encoder<T> {
    /// A stream at the start of a text. It holds only its own progress, so thousands may be open. They use the caches
    /// that the tokenizer keeps.
    ///
    /// # Errors
    /// As [`StreamEncoder::new`].
    pub fn stream(&self, options: EncodeOptions) -> Result<StreamEncoder<T>, EncodeError> {
        StreamEncoder::new(self.tokenizer().clone(), options)
    }
}

impl<T: Borrow<Tokenizer>> StreamEncoder<T> {
    /// An encoder at the start of a text.
    ///
    /// # Errors
    /// [`EncodeError`]: the file has no vocabulary, or a token that must be added is missing.
    pub fn new(tokenizer: T, options: EncodeOptions) -> Result<Self, EncodeError> {
        let (bos, eos) = tokenizer.borrow().added_tokens(options.add_special)?;
        let EncodeOptions { parse_special, .. } = options;
        let input = Waiting::default();
        let fragment = Waiting::default();
        Ok(Self { tokenizer, parse_special, bos, eos, input, fragment, progress: None })
    }

    /// Takes more of the text, cut anywhere, even inside a character, and pushes the settled tokens without spans.
    ///
    /// # Errors
    /// Then the stream is over, and the sink may hold some of the tokens.
    /// - [`EncodeError::TextTooLong`]: more than 2 GiB are unsettled.
    /// - [`EncodeError::OutOfMemory`].
    pub fn push<S: Sink>(&mut self, text: impl AsRef<[u8]>, sink: &mut S) -> Result<(), EncodeError> {
        memory::catch(|| self.take(text.as_ref(), sink))?
    }

    fn take<S: Sink>(&mut self, text: &[u8], sink: &mut S) -> Result<(), EncodeError> {
        const { assert!(!S::SPANS, "a stream has no spans") };
        if let Some(bos) = self.bos.take() {
            sink.push(bos, 0..0);
        }
        for part in text.chunks(STEP) {
            interrupt::check();
            append(&mut self.input.text, part);
            let waiting = self.input.text.len().max(self.fragment.text.len());
            if waiting > MAX_TEXT - STEP {
                return Err(EncodeError::TextTooLong { len: waiting });
            }
            if self.input.is_due() {
                self.partition(false, sink);
            }
        }
        Ok(())
    }

    /// Ends the text and pushes the tokens of the waiting text.
    ///
    /// # Errors
    /// As [`StreamEncoder::push`].
    pub fn finish<S: Sink>(self, sink: &mut S) -> Result<(), EncodeError> {
        memory::catch(|| self.end(sink))?
    }

    fn end<S: Sink>(mut self, sink: &mut S) -> Result<(), EncodeError> {
        self.take(&[], sink)?;
        self.partition(true, sink);
        if let Some(eos) = self.eos {
            sink.push(eos, 0..0);
        }
        Ok(())
    }

    /// The number of waiting bytes.
    pub fn num_waiting(&self) -> usize {
        self.input.text.len() + self.fragment.text.len()
    }

    /// Cuts the settled special tokens out of the input and passes on the text between them.
    fn partition<S: Sink>(&mut self, is_end: bool, sink: &mut S) {
        let Self { tokenizer, input, fragment, progress, .. } = self;
        let tokenizer: &Tokenizer = (*tokenizer).borrow();
        let specials = tokenizer.specials(self.parse_special);
        let settled = if is_end { input.text.len() } else { specials.settled(&input.text) };
        tokenizer.pool().with(|mut scratch| {
            let Scratch { special, model, .. } = &mut *scratch;
            let model = model.get();
            for item in specials.partition(&input.text[..settled], None, special) {
                match *item {
                    Item::Text(start, end) => {
                        append(&mut fragment.text, &input.text[start..end]);
                        let progress = progress.get_or_insert_default();
                        if fragment.is_due() {
                            encode_part(tokenizer, fragment, false, progress, model, sink);
                        }
                    }
                    Item::Token(id, ..) => {
                        if let Some(mut progress) = progress.take() {
                            encode_part(tokenizer, fragment, true, &mut progress, model, sink);
                        }
                        sink.push(id, 0..0);
                    }
                }
            }
            if is_end && let Some(mut progress) = progress.take() {
                encode_part(tokenizer, fragment, true, &mut progress, model, sink);
            }
            ((), scratch)
        });
        input.drop_start(settled);
    }
}

/// Pushes the settled tokens of the current fragment, or all at its end, and drops the text that they take.
fn encode_part<S: Sink>(
    tokenizer: &Tokenizer,
    waiting: &mut Waiting,
    is_end: bool,
    progress: &mut Progress,
    scratch: &mut ModelScratch,
    sink: &mut S,
) {
    let text = &waiting.text[..];
    let complete = if is_end { text } else { &text[..complete_len(text)] };
    let is_utf8 = utf8::is_valid(complete);
    let fragment = Fragment { text, start: 0, after_special: true, continues: false, is_utf8 };
    let task = Task { vocabulary: tokenizer.vocabulary(), fragment, scratch, sink };
    let done = tokenizer.model().encode_part(task, is_end, progress);
    waiting.drop_start(done);
    if is_end {
        waiting.goal = 0;
    }
}
