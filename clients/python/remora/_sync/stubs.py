# Derived from remora/_async/stubs.py by tools/derive_sync.py. Do not edit: edit that, and run `make gen`.
"""The generated stubs over one channel."""

from remora._backends.synchronous import Channel
from remora.v1.admin_service_pb2_grpc import AdminServiceStub
from remora.v1.checkpoint_service_pb2_grpc import CheckpointServiceStub
from remora.v1.conversation_service_pb2_grpc import ConversationServiceStub
from remora.v1.history_service_pb2_grpc import HistoryServiceStub
from remora.v1.memory_service_pb2_grpc import MemoryServiceStub
from remora.v1.store_service_pb2_grpc import StoreServiceStub
from remora.v1.text_service_pb2_grpc import TextServiceStub
from remora.v1.transfer_service_pb2_grpc import TransferServiceStub
from remora.v1.user_service_pb2_grpc import UserServiceStub
from remora.v1.vector_service_pb2_grpc import VectorServiceStub
from remora.v1.workflow_service_pb2_grpc import WorkflowServiceStub


class Stubs:
    """The contract's services. Calls made here are not retried and get no deadline."""

    def __init__(self, channel: Channel) -> None:
        self.checkpoints = CheckpointServiceStub(channel)
        self.conversations = ConversationServiceStub(channel)
        self.history = HistoryServiceStub(channel)
        self.memory = MemoryServiceStub(channel)
        self.workflows = WorkflowServiceStub(channel)
        self.store = StoreServiceStub(channel)
        self.vectors = VectorServiceStub(channel)
        self.users = UserServiceStub(channel)
        self.text = TextServiceStub(channel)
        self.transfer = TransferServiceStub(channel)
        self.admin = AdminServiceStub(channel)
