//! The templates that llama.cpp knows, in the order in which it looks for them, and what is special about each.
//!
//! Source: `common_chat_try_specialized_template` in `common/chat.cpp`, and each handler's own file in
//! `common/parsers`, of llama.cpp. Deviations: see [`super`].

use super::schema::Conversion;
use super::{Answer, Handler, Rewriting, Thinking};

const PLAIN: Handler = Handler {
    has: &[],
    lacks: &[],
    rewriting: Rewriting::None,
    start: "",
    opening: "",
    thinking: Thinking::Before("</think>"),
    answer: Answer::Instead,
    tools: Conversion::Whole,
    thinks: true,
};

/// In the order in which they are tried.
pub(super) const HANDLERS: &[Handler] = &[
    // Ministral 3, Magistral, Mistral Large 3.
    Handler {
        has: &["[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"],
        lacks: &["[CALL_ID]"],
        rewriting: Rewriting::Blocks,
        opening: "[THINK]",
        thinking: Thinking::Before("[/THINK]"),
        ..PLAIN
    },
    // LLM-jp 4.1.
    Handler { has: &["chat_format=llm-jp-harmony-v1"], ..GPT_OSS },
    GPT_OSS,
    // Muse Glimmer.
    Handler {
        has: &["<atem:function_calls>", "<|eom|>"],
        opening: "<|start|>assistant to=self<|message|>",
        thinking: Thinking::Before("<|eom|><|start|>assistant to=user<|message|>"),
        tools: Conversion::Parameters,
        ..PLAIN
    },
    // Functionary v3.2.
    Handler {
        has: &[">>>all", ">>>${recipient}"],
        start: "<|start_header_id|>assistant<|end_header_id|>\n\n>>>",
        opening: "<|start_header_id|>assistant<|end_header_id|>\n\n>>>all\n",
        thinking: Thinking::Ignored,
        answer: Answer::Ignored,
        thinks: false,
        ..PLAIN
    },
    // Kimi K2.
    Handler {
        has: &["<|tool_calls_section_begin|>", "<|tool_call_begin|>"],
        start: "<|im_assistant|>assistant<|im_middle|>",
        opening: "<|im_assistant|>assistant<|im_middle|><think>",
        answer: Answer::Ignored,
        ..PLAIN
    },
    // Kimi K3.
    Handler {
        has: &["<|open|>", "<|close|>", "<|end_of_msg|>"],
        opening: "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>",
        thinking: Thinking::Before("<|close|>think<|sep|><|open|>response<|sep|>"),
        answer: Answer::Ignored,
        tools: Conversion::None,
        ..PLAIN
    },
    // K2 Horizon.
    Handler {
        has: &["<|ifm|im_start|>", "<ifm|tool_calls>"],
        rewriting: Rewriting::Horizon,
        start: "<|ifm|im_start|>assistant\n",
        opening: "<|ifm|im_start|>assistant\n",
        tools: Conversion::StrictParameters,
        ..PLAIN
    },
    // Ling 3.0, Bailing V3.
    Handler {
        has: &["<role>ASSISTANT</role>", "<arg_key>"],
        opening: "<role>ASSISTANT</role>\n<think>",
        tools: Conversion::StrictParameters,
        ..PLAIN
    },
    // Cohere2 MoE, North Code.
    Handler {
        has: &["<|START_TEXT|>", "<|START_ACTION|>"],
        start: "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        opening: "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>",
        thinking: Thinking::Before("<|END_THINKING|><|START_TEXT|>"),
        answer: Answer::Beside,
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
        start: "assistant<|role_sep|>\n",
        opening: "assistant<|role_sep|>\n",
        thinking: Thinking::Ignored,
        answer: Answer::Ignored,
        thinks: false,
        ..PLAIN
    },
    // MiniMax-M3.
    Handler {
        has: &["]<]minimax[>[", "<tool_call>", "<invoke name="],
        rewriting: Rewriting::Prompted,
        opening: "<mm:think>",
        thinking: Thinking::Before("</mm:think>"),
        tools: Conversion::Values,
        ..PLAIN
    },
    // DeepSeek V3.2.
    Handler { has: &["dsml_token", "DSML", "function_calls"], ..DEEPSEEK },
    // DeepSeek V4.
    Handler { has: &["dsml_token", "DSML", "tool_calls"], rewriting: Rewriting::SortedAnswers, ..DEEPSEEK },
    // Gemma 4.
    Handler { has: &["'<|tool_call>call:'", "{#- OpenAI Chat Completions:"], rewriting: Rewriting::Gemma, ..GEMMA4 },
    Handler { has: &["'<|tool_call>call:'"], rewriting: Rewriting::OldGemma, ..GEMMA4 },
    // MiniCPM5.
    Handler {
        has: &["Tool usage guidelines:", "<function name=\"", "<param name=\""],
        start: "<|im_start|>assistant\n",
        opening: "<|im_start|>assistant\n<think>\n",
        thinking: Thinking::Before("\n</think>\n\n"),
        tools: Conversion::Parameters,
        ..PLAIN
    },
    // TranslateGemma.
    Handler {
        has: &["[source_lang_code]", "[target_lang_code]"],
        rewriting: Rewriting::Languages,
        opening: "<start_of_turn>model\n",
        thinking: Thinking::Ignored,
        answer: Answer::Ignored,
        tools: Conversion::None,
        thinks: false,
        ..PLAIN
    },
    // Qwen3.5, Nemotron Nano 3, StepFun 3.5: as Qwen3-Coder, with thinking.
    Handler {
        has: &["<tool_call>", "<function=", "<parameter=", "<think>"],
        opening: "<|im_start|>assistant\n<think>\n",
        thinking: Thinking::Before("\n</think>\n\n"),
        thinks: true,
        ..QWEN3_CODER
    },
    Handler { has: &["<tool_call>", "<function=", "<parameter="], ..QWEN3_CODER },
];

const GPT_OSS: Handler = Handler {
    has: &["<|channel|>"],
    rewriting: Rewriting::Harmony,
    start: "<|start|>assistant",
    opening: "<|start|>assistant<|channel|>analysis<|message|>",
    thinking: Thinking::Before("<|end|><|start|>assistant<|channel|>final<|message|>"),
    ..PLAIN
};

const LFM2: Handler = Handler {
    rewriting: Rewriting::Thinking,
    start: "<|im_start|>assistant\n",
    opening: "<|im_start|>assistant\n<think>",
    answer: Answer::WithoutTools,
    tools: Conversion::None,
    ..PLAIN
};

const DEEPSEEK: Handler = Handler {
    start: "<｜Assistant｜>",
    opening: "<｜Assistant｜><think>",
    answer: Answer::Beside,
    tools: Conversion::Parameters,
    ..PLAIN
};

const GEMMA4: Handler = Handler {
    opening: "<|channel>thought\n",
    thinking: Thinking::Before("<channel|>"),
    tools: Conversion::None,
    ..PLAIN
};

const QWEN3_CODER: Handler = Handler {
    lacks: &["'<tool_call><function=' ~ tool_call.name ~ '>'"],
    start: "<|im_start|>assistant\n",
    opening: "<|im_start|>assistant\n",
    thinking: Thinking::Dropped,
    tools: Conversion::StrictParameters,
    thinks: false,
    ..PLAIN
};
