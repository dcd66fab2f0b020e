//! Chat templates and what they write: `ChatTemplate` and `Rendering`.

mod growing;
mod refusal;
mod values;

use std::ops::Range;

use ggtok_chat::{Error, Mask, Now, Options, Rendered, Request, Warning};
use ggtok_core::{Spans, TokenId};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::arguments;
use crate::bytes::str_of;
use crate::errors::invalid;
use crate::run::{list, run};
use crate::tokenizer::Tokenizer;

#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct ChatTemplate {
    chat: ggtok_chat::ChatTemplate,
    name: String,
}

impl ChatTemplate {
    /// An error of this template with its name.
    fn named(&self) -> impl Fn(Error) -> (Error, String) + '_ {
        |error| (error, self.name.clone())
    }
}

#[pymethods]
impl ChatTemplate {
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>, name: String) -> PyResult<Self> {
        let argument = arguments::text(source)?;
        let source = argument.text();
        let chat = run(py, source.as_bytes().len(), || {
            ggtok_chat::ChatTemplate::new(source.as_bytes()).map_err(|error| (error, name.clone()))
        })?;
        Ok(Self { chat, name })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn variables(&self) -> Vec<String> {
        let names = self.chat.template().variables();
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    #[getter]
    fn unknown(&self) -> Vec<(usize, usize, String)> {
        let unknown = self.chat.template().unknown().into_iter();
        unknown.map(|(position, problem)| (position.line, position.column, problem.to_owned())).collect()
    }

    #[getter]
    fn literals<'py>(&self, py: Python<'py>) -> Vec<(Bound<'py, PyBytes>, bool)> {
        let literals = self.chat.template().literals();
        literals.map(|(text, is_constant)| (PyBytes::new(py, &text), is_constant)).collect()
    }

    #[pyo3(signature = (body, *, bos = "", eos = "", media_marker = None, closes = None, now = (0, 0, "UTC".into())))]
    fn render(
        slf: Bound<'_, Self>,
        body: &Bound<'_, PyAny>,
        bos: &str,
        eos: &str,
        media_marker: Option<String>,
        closes: Option<bool>,
        now: (i64, i32, String),
    ) -> PyResult<Rendering> {
        let request = values::request(body)?;
        let options = Options { bos: bos.to_owned(), eos: eos.to_owned(), media_marker, closes };
        let now = Now { seconds: now.0, offset: now.1, zone: now.2 };
        let this = slf.get();
        let rendered =
            run(slf.py(), request.num_bytes(), || this.chat.apply(&request, &options, &now).map_err(this.named()))?;
        Ok(Rendering { template: slf.unbind(), request, options, now, rendered })
    }
}

#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct Rendering {
    template: Py<ChatTemplate>,
    request: Request,
    options: Options,
    now: Now,
    rendered: Rendered,
}

/// A warning: its kind, its subject and its message, if it has one, and its text.
type WarningRow<'a> = (&'static str, Option<&'a str>, Option<usize>, String);

/// From which byte to which, or from which token.
type Places = Vec<(usize, usize)>;

/// The tokens of messages, which tokens are the assistant's, and markers with their message and part and their tokens.
type Masked = (Vec<Option<(usize, usize)>>, Vec<bool>, Vec<(usize, usize, usize, usize)>);

#[pymethods]
impl Rendering {
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let bytes = self.rendered.text.as_bytes();
        str_of(py, bytes, "surrogatepass").or_else(|_| str_of(py, bytes, "replace"))
    }

    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.rendered.text.as_bytes())
    }

    #[getter]
    fn warnings(&self) -> Vec<WarningRow<'_>> {
        fn row(warning: &Warning) -> WarningRow<'_> {
            (warning.code, warning.subject.as_deref(), warning.message, warning.to_string())
        }
        self.rendered.warnings.iter().map(row).collect()
    }

    #[pyo3(signature = (tokenizer, *, add_special = true, refuse_user_defined = false))]
    fn ids<'py>(
        &self,
        tokenizer: &Bound<'py, Tokenizer>,
        add_special: bool,
        refuse_user_defined: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        list(tokenizer.py(), self.encoded(tokenizer, add_special, refuse_user_defined)?.ids)
    }

    #[pyo3(signature = (tokenizer, *, add_special = true, refuse_user_defined = false, mask = "turn"))]
    fn encode<'py>(
        &self,
        tokenizer: &Bound<'py, Tokenizer>,
        add_special: bool,
        refuse_user_defined: bool,
        mask: &str,
    ) -> PyResult<(Bound<'py, PyList>, Masked)> {
        let spans = self.encoded(tokenizer, add_special, refuse_user_defined)?;
        let masked = self.masked_by(tokenizer, &spans.spans, mask)?;
        Ok((list(tokenizer.py(), spans.ids)?, masked))
    }

    fn stretch(
        &self,
        tokenizer: &Bound<'_, Tokenizer>,
        place: (usize, usize),
        begins: bool,
        ends: bool,
        add_special: bool,
    ) -> PyResult<(Vec<TokenId>, Places)> {
        let text = &self.rendered.text;
        let (start, end) = place;
        if start > end || end > text.len() {
            return Err(invalid(format!("bytes {start} to {end} are not a part of the text")));
        }
        let spans = tokenizer.get().work(tokenizer.py(), end - start, |encoder| {
            ggtok_chat::encode_stretch(encoder, text, start..end, add_special, begins, ends)
                .map_err(self.template.get().named())
        })?;
        Ok((spans.ids, spans.spans.into_iter().map(|span| (start + span.start, start + span.end)).collect()))
    }

    fn masked(&self, tokenizer: &Bound<'_, Tokenizer>, spans: &Bound<'_, PyList>, mask: &str) -> PyResult<Masked> {
        let span = |span: Bound<'_, PyAny>| span.extract().map(|(start, end): (usize, usize)| start..end);
        let spans = spans.iter().map(span).collect::<PyResult<Vec<Range<usize>>>>()?;
        self.masked_by(tokenizer, &spans, mask)
    }

    fn places(&self) -> Vec<Option<growing::MessagePlace>> {
        growing::places(&self.request, &self.rendered.text)
    }

    fn shared(&self, other: &Self) -> usize {
        growing::shared(&self.rendered.text, &other.rendered.text)
    }

    fn is_template(&self, at: usize) -> bool {
        !self.rendered.text.origin_at(at).is_caller()
    }
}

impl Rendering {
    fn encoded(
        &self,
        tokenizer: &Bound<'_, Tokenizer>,
        add_special: bool,
        refuse_user_defined: bool,
    ) -> PyResult<Spans> {
        let template = self.template.get();
        let text = &self.rendered.text;
        let spans = tokenizer.get().work(tokenizer.py(), text.len(), |encoder| {
            ggtok_chat::encode(encoder, text, add_special).map_err(template.named())
        })?;
        if refuse_user_defined {
            refusal::check(tokenizer.get().core.vocabulary(), template.chat.template().source(), text, &spans)?;
        }
        Ok(spans)
    }

    fn masked_by(&self, tokenizer: &Bound<'_, Tokenizer>, spans: &[Range<usize>], mask: &str) -> PyResult<Masked> {
        let mask = if mask == "content" { Mask::Content } else { Mask::Turn };
        let vocabulary = tokenizer.get().core.vocabulary();
        let template = self.template.get();
        let Self { request, options, now, rendered, .. } = self;
        let masked = || -> Result<Masked, Error> {
            let ends: Vec<&[u8]> = vocabulary.eog().iter().map(|&id| vocabulary.text(id)).collect();
            let ranges = template.chat.masked(request, &rendered.text, options, now, &ends, mask)?;
            let hulls = ggtok_chat::message_spans(&rendered.text, spans, request);
            let hulls = hulls.into_iter().map(|hull| hull.map(|hull| (hull.start, hull.end))).collect();
            let markers = ggtok_chat::markers(rendered, spans).into_iter();
            let media = markers.map(|(place, tokens)| (place.message, place.part, tokens.start, tokens.end)).collect();
            Ok((hulls, ggtok_chat::mask_of(spans, &ranges), media))
        };
        run(tokenizer.py(), rendered.text.len(), || masked().map_err(template.named()))
    }
}
