"""Conversations: the file's chat templates as text and as ids, safe from control tokens in messages."""

from .chat import Chat, Turn
from .encoding import ChatEncoding, ChatMedia

__all__ = ["Chat", "ChatEncoding", "ChatMedia", "Turn"]
