//! The templates that llama.cpp knows, in the order in which it looks for them, and what is special about each.
//!
//! Source: `common_chat_try_specialized_template` in `common/chat.cpp`, and each handler's own file in
//! `common/parsers`, of llama.cpp. Deviations: see [`super`].

use super::{Form, Handler, Thinking, messages};

pub(super) const PLAIN: Handler<'static> = Handler {
    has: &[],
    lacks: &[],
    rewrite: |_, _| Ok(()),
    form: Form::Plain,
    opening: b"",
    thinking: Thinking::Before(b"</think>"),
};

/// In the order in which they are tried.
pub(super) const HANDLERS: &[Handler<'static>] = &[
    // Ministral 3, Magistral, Mistral Large 3.
    Handler {
        has: &["[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"],
        lacks: &["[CALL_ID]"],
        rewrite: messages::as_blocks,
        opening: b"[THINK]",
        thinking: Thinking::Before(b"[/THINK]"),
        ..PLAIN
    },
    // LLM-jp 4.1.
    Handler { has: &["chat_format=llm-jp-harmony-v1"], ..GPT_OSS },
    GPT_OSS,
    // Muse Glimmer.
    Handler {
        has: &["<atem:function_calls>", "<|eom|>"],
        opening: b"<|start|>assistant to=self<|message|>",
        thinking: Thinking::Before(b"<|eom|><|start|>assistant to=user<|message|>"),
        ..PLAIN
    },
    // Functionary v3.2.
    Handler {
        has: &[">>>all", ">>>${recipient}"],
        opening: b"<|start_header_id|>assistant<|end_header_id|>\n\n>>>all\n",
        thinking: Thinking::Ignored,
        ..PLAIN
    },
    // Kimi K2.
    Handler {
        has: &["<|tool_calls_section_begin|>", "<|tool_call_begin|>"],
        opening: b"<|im_assistant|>assistant<|im_middle|><think>",
        ..PLAIN
    },
    // Kimi K3.
    Handler {
        has: &["<|open|>", "<|close|>", "<|end_of_msg|>"],
        opening: b"<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>",
        thinking: Thinking::Before(b"<|close|>think<|sep|><|open|>response<|sep|>"),
        ..PLAIN
    },
    // K2 Horizon.
    Handler {
        has: &["<|ifm|im_start|>", "<ifm|tool_calls>"],
        rewrite: messages::with_some_thinking,
        form: Form::Horizon,
        opening: b"<|ifm|im_start|>assistant\n",
        ..PLAIN
    },
    // Ling 3.0, Bailing V3.
    Handler { has: &["<role>ASSISTANT</role>", "<arg_key>"], opening: b"<role>ASSISTANT</role>\n<think>", ..PLAIN },
    // Cohere2 MoE, North Code.
    Handler {
        has: &["<|START_TEXT|>", "<|START_ACTION|>"],
        opening: b"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>",
        thinking: Thinking::Before(b"<|END_THINKING|><|START_TEXT|>"),
        ..PLAIN
    },
    // LFM2.
    Handler { has: &["<|tool_list_start|>", "<|tool_list_end|>"], ..LFM2 },
    // LFM2.5.
    Handler { has: &["List of tools: ["], lacks: &["<|tool_list_start|>"], ..LFM2 },
    // GigaChat 3.
    Handler {
        has: &["<|role_sep|>", "<|message_sep|>"],
        lacks: &["<|function_call|>"],
        opening: b"assistant<|role_sep|>\n",
        thinking: Thinking::Ignored,
        ..PLAIN
    },
    // MiniMax-M3.
    Handler {
        has: &["]<]minimax[>[", "<tool_call>", "<invoke name="],
        form: Form::Prompted,
        opening: b"<mm:think>",
        thinking: Thinking::Before(b"</mm:think>"),
        ..PLAIN
    },
    // DeepSeek V3.2.
    Handler { has: &["dsml_token", "DSML", "function_calls"], ..DEEPSEEK },
    // DeepSeek V4.
    Handler {
        has: &["dsml_token", "DSML", "tool_calls"],
        rewrite: messages::with_sorted_answers,
        form: Form::Closed,
        ..DEEPSEEK
    },
    // Gemma 4.
    Handler { has: &["'<|tool_call>call:'", "{#- OpenAI Chat Completions:"], ..GEMMA4 },
    Handler { has: &["'<|tool_call>call:'"], rewrite: messages::with_tool_responses, ..GEMMA4 },
    // MiniCPM5.
    Handler {
        has: &["Tool usage guidelines:", "<function name=\"", "<param name=\""],
        opening: b"<|im_start|>assistant\n<think>\n",
        thinking: Thinking::Before(b"\n</think>\n\n"),
        ..PLAIN
    },
    // TranslateGemma.
    Handler {
        has: &["[source_lang_code]", "[target_lang_code]"],
        rewrite: messages::with_languages,
        opening: b"<start_of_turn>model\n",
        thinking: Thinking::Ignored,
        ..PLAIN
    },
    // Qwen3.5, Nemotron Nano 3, StepFun 3.5: as Qwen3-Coder, with thinking.
    Handler {
        has: &["<tool_call>", "<function=", "<parameter=", "<think>"],
        opening: b"<|im_start|>assistant\n<think>\n",
        thinking: Thinking::Before(b"\n</think>\n\n"),
        ..QWEN3_CODER
    },
    Handler { has: &["<tool_call>", "<function=", "<parameter="], ..QWEN3_CODER },
];

const GPT_OSS: Handler<'static> = Handler {
    has: &["<|channel|>"],
    rewrite: messages::with_thinking_for_content,
    form: Form::Harmony,
    opening: b"<|start|>assistant<|channel|>analysis<|message|>",
    thinking: Thinking::Before(b"<|end|><|start|>assistant<|channel|>final<|message|>"),
    ..PLAIN
};

const LFM2: Handler<'static> =
    Handler { rewrite: messages::with_thinking, opening: b"<|im_start|>assistant\n<think>", ..PLAIN };

const DEEPSEEK: Handler<'static> = Handler { opening: "<｜Assistant｜><think>".as_bytes(), ..PLAIN };

const GEMMA4: Handler<'static> =
    Handler { form: Form::Gemma, opening: b"<|channel>thought\n", thinking: Thinking::Before(b"<channel|>"), ..PLAIN };

const QWEN3_CODER: Handler<'static> = Handler {
    lacks: &["'<tool_call><function=' ~ tool_call.name ~ '>'"],
    opening: b"<|im_start|>assistant\n",
    thinking: Thinking::Dropped,
    ..PLAIN
};
