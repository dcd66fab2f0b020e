//! The templates that llama.cpp knows, in the order in which it looks for them, and what is special about each.
//!
//! Source: `common_chat_try_specialized_template` in `common/chat.cpp`, and each handler's own file in
//! `common/parsers`, of llama.cpp. Deviations: see [`super`].

use super::Thinking::{self, Before, Dropped, Ignored};
use super::{Form, Handler, Rewrite, messages};

/// What most models write after their thinking.
const THINK: Thinking<'static> = Before(b"</think>");

pub(super) const PLAIN: Handler<'static> =
    Handler { has: &[], lacks: &[], rewrite: |_, _| Ok(()), form: Form::Plain, opening: b"", thinking: THINK };

impl Handler<'static> {
    /// The same for templates that have these texts.
    const fn has(self, has: &'static [&'static str]) -> Self {
        Self { has, ..self }
    }

    /// The same for templates that lack these texts.
    const fn lacks(self, lacks: &'static [&'static str]) -> Self {
        Self { lacks, ..self }
    }

    const fn rewrites(self, rewrite: Rewrite) -> Self {
        Self { rewrite, ..self }
    }

    const fn form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// The same with what a continued message begins with, and what becomes of its thinking.
    const fn opens(self, opening: &'static str, thinking: Thinking<'static>) -> Self {
        Self { opening: opening.as_bytes(), thinking, ..self }
    }
}

/// In the order in which they are tried.
pub(super) const HANDLERS: &[Handler<'static>] = &[
    // Ministral 3, Magistral, Mistral Large 3.
    PLAIN
        .has(&["[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"])
        .lacks(&["[CALL_ID]"])
        .rewrites(messages::as_blocks)
        .opens("[THINK]", Before(b"[/THINK]")),
    // LLM-jp 4.1.
    GPT_OSS.has(&["chat_format=llm-jp-harmony-v1"]),
    GPT_OSS,
    // Muse Glimmer.
    PLAIN
        .has(&["<atem:function_calls>", "<|eom|>"])
        .opens("<|start|>assistant to=self<|message|>", Before(b"<|eom|><|start|>assistant to=user<|message|>")),
    // Functionary v3.2.
    PLAIN
        .has(&[">>>all", ">>>${recipient}"])
        .opens("<|start_header_id|>assistant<|end_header_id|>\n\n>>>all\n", Ignored),
    // Kimi K2.
    PLAIN
        .has(&["<|tool_calls_section_begin|>", "<|tool_call_begin|>"])
        .opens("<|im_assistant|>assistant<|im_middle|><think>", THINK),
    // Kimi K3.
    PLAIN.has(&["<|open|>", "<|close|>", "<|end_of_msg|>"]).opens(
        "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>",
        Before(b"<|close|>think<|sep|><|open|>response<|sep|>"),
    ),
    // K2 Horizon.
    PLAIN
        .has(&["<|ifm|im_start|>", "<ifm|tool_calls>"])
        .rewrites(messages::with_some_thinking)
        .form(Form::Horizon)
        .opens("<|ifm|im_start|>assistant\n", THINK),
    // Ling 3.0, Bailing V3.
    PLAIN.has(&["<role>ASSISTANT</role>", "<arg_key>"]).opens("<role>ASSISTANT</role>\n<think>", THINK),
    // Cohere2 MoE, North Code.
    PLAIN
        .has(&["<|START_TEXT|>", "<|START_ACTION|>"])
        .opens("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>", Before(b"<|END_THINKING|><|START_TEXT|>")),
    // LFM2.
    LFM2.has(&["<|tool_list_start|>", "<|tool_list_end|>"]),
    // LFM2.5.
    LFM2.has(&["List of tools: ["]).lacks(&["<|tool_list_start|>"]),
    // GigaChat 3.
    PLAIN
        .has(&["<|role_sep|>", "<|message_sep|>"])
        .lacks(&["<|function_call|>"])
        .opens("assistant<|role_sep|>\n", Ignored),
    // MiniMax-M3.
    PLAIN
        .has(&["]<]minimax[>[", "<tool_call>", "<invoke name="])
        .form(Form::Prompted)
        .opens("<mm:think>", Before(b"</mm:think>")),
    // DeepSeek V3.2.
    DEEPSEEK.has(&["dsml_token", "DSML", "function_calls"]),
    // DeepSeek V4.
    DEEPSEEK.has(&["dsml_token", "DSML", "tool_calls"]).rewrites(messages::with_sorted_answers).form(Form::Closed),
    // Gemma 4.
    GEMMA4.has(&["'<|tool_call>call:'", "{#- OpenAI Chat Completions:"]),
    GEMMA4.has(&["'<|tool_call>call:'"]).rewrites(messages::with_tool_responses),
    // MiniCPM5.
    PLAIN
        .has(&["Tool usage guidelines:", "<function name=\"", "<param name=\""])
        .opens("<|im_start|>assistant\n<think>\n", Before(b"\n</think>\n\n")),
    // TranslateGemma.
    PLAIN
        .has(&["[source_lang_code]", "[target_lang_code]"])
        .rewrites(messages::with_languages)
        .opens("<start_of_turn>model\n", Ignored),
    // Qwen3.5, Nemotron Nano 3, StepFun 3.5: as Qwen3-Coder, with thinking.
    QWEN3_CODER
        .has(&["<tool_call>", "<function=", "<parameter=", "<think>"])
        .opens("<|im_start|>assistant\n<think>\n", Before(b"\n</think>\n\n")),
    QWEN3_CODER.has(&["<tool_call>", "<function=", "<parameter="]),
];

const GPT_OSS: Handler<'static> =
    PLAIN.has(&["<|channel|>"]).rewrites(messages::with_thinking_for_content).form(Form::Harmony).opens(
        "<|start|>assistant<|channel|>analysis<|message|>",
        Before(b"<|end|><|start|>assistant<|channel|>final<|message|>"),
    );

const LFM2: Handler<'static> = PLAIN.rewrites(messages::with_thinking).opens("<|im_start|>assistant\n<think>", THINK);

const DEEPSEEK: Handler<'static> = PLAIN.opens("<｜Assistant｜><think>", THINK);

const GEMMA4: Handler<'static> = PLAIN.form(Form::Gemma).opens("<|channel>thought\n", Before(b"<channel|>"));

const QWEN3_CODER: Handler<'static> =
    PLAIN.lacks(&["'<tool_call><function=' ~ tool_call.name ~ '>'"]).opens("<|im_start|>assistant\n", Dropped);
