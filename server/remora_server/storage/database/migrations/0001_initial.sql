-- Content is keyed by the conversation's uid (the revision that created it), so that a deleted and recreated id is
-- another conversation. Times are microseconds since 1970, UTC. No keys or indexes on the tables that grow with messages:
-- uniqueness is decided before the journal, and an index is rewritten at every checkpoint.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE conversations (
    tenant_id TEXT NOT NULL,
    id TEXT NOT NULL,
    uid UBIGINT NOT NULL,
    user_id TEXT NOT NULL,
    resource_id TEXT NOT NULL,
    title TEXT NOT NULL,
    storage_limit INTEGER,
    body BLOB NOT NULL,              -- encoded remora.v1.Conversation, the caller's fields
    create_time BIGINT NOT NULL
);

CREATE TABLE heads (
    tenant_id TEXT NOT NULL,
    uid UBIGINT NOT NULL,
    last_sequence UBIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    last_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL,
    revision UBIGINT NOT NULL
);

CREATE TABLE messages (
    tenant_id TEXT NOT NULL,
    conversation_uid UBIGINT NOT NULL,
    sequence UBIGINT NOT NULL,
    revision UBIGINT NOT NULL,
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    body BLOB NOT NULL,              -- encoded remora.v1.Message: the caller's fields without the text
    sent_time BIGINT,
    session_id TEXT NOT NULL,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL,
    token_count INTEGER NOT NULL
);

CREATE TABLE embeddings (
    tenant_id TEXT NOT NULL,
    conversation_uid UBIGINT NOT NULL,
    sequence UBIGINT NOT NULL,
    message_revision UBIGINT NOT NULL,
    model TEXT NOT NULL,
    by_caller BOOLEAN NOT NULL,
    dimension INTEGER NOT NULL,
    values FLOAT[] NOT NULL,
    text_digest UBIGINT NOT NULL     -- of the text that was embedded, 0 where it is the message's own
);

CREATE TABLE steps (
    tenant_id TEXT NOT NULL,
    conversation_uid UBIGINT NOT NULL,
    user_id TEXT NOT NULL,
    id TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    step_index INTEGER NOT NULL,
    revision UBIGINT NOT NULL,
    ordinal INTEGER NOT NULL,
    body BLOB NOT NULL               -- encoded remora.v1.Step, complete
);

CREATE TABLE working_memories (
    tenant_id TEXT NOT NULL,
    conversation_uid UBIGINT NOT NULL,   -- 0 where it is a user's
    user_id TEXT NOT NULL,               -- empty where it is a conversation's
    content BLOB NOT NULL,
    update_time BIGINT NOT NULL,
    revision UBIGINT NOT NULL
);

CREATE TABLE requests (
    tenant_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    revision UBIGINT NOT NULL,
    time BIGINT NOT NULL,
    outcome BLOB NOT NULL            -- encoded remora_server.storage.v1.Outcome
);
