// The receipts of contexts and searches.

import type { CallOptions } from "./calls.js";
import { InternalError } from "./errors.js";
import type {
  DiffContextsResponse,
  MemoryService,
  Receipt,
  ReplayContextResponse,
} from "./generated/remora/v1/memory_service_pb.js";
import { taken } from "./pages.js";
import { requireKnown } from "./refusals.js";
import type { ServiceClient } from "./services.js";

/** Whose a receipt must be. */
export interface OfUser {
  /** If given, the receipt must be this user's. */
  userId?: string | undefined;
}

/** Which receipts are listed. */
export interface ListedReceipts extends OfUser {
  /** Only those of contexts and searches of this conversation. */
  conversationId?: string | undefined;
  /** At most so many; Infinity: all. Default: 100. */
  limit?: number | undefined;
}

/**
 * What contexts and searches were made of: each leaves a receipt, for as long as the server's `receipt_days` says. Its
 * id is the `receiptId` of the reply. A receipt that is not there is a ReceiptNotFoundError: it has expired, its user
 * was deleted, or the server was killed before it was written.
 */
export class Receipts {
  readonly #memory: ServiceClient<typeof MemoryService>;

  constructor(memory: ServiceClient<typeof MemoryService>) {
    this.#memory = memory;
  }

  /** The receipt. */
  async get(receiptId: string, of: OfUser = {}, options?: CallOptions): Promise<Receipt> {
    const { receipt } = await this.#memory.getReceipt({ receiptId, userId: userOf(of) }, options);
    if (receipt === undefined) {
      throw new InternalError("the reply has no receipt");
    }
    return receipt;
  }

  /** Receipts without their items and requests, the newest first. Each page of 1,000 has the timeout. */
  async listReceipts(which: ListedReceipts = {}, options?: CallOptions): Promise<Receipt[]> {
    requireKnown(which, ["userId", "conversationId", "limit"], "option");
    const { userId = "", conversationId = "", limit = 100 } = which;
    const listed = await taken(
      this.#memory.listReceipts,
      { userId, conversationId },
      (page) => page.receipts,
      limit,
      options,
    );
    return listed.flat().slice(0, limit);
  }

  /**
   * The reply of the receipt again, from the messages as they were then: `reply` is the context or the search. Nothing
   * is searched and nothing is ranked. What was erased since is left out and named.
   */
  async replay(receiptId: string, of: OfUser = {}, options?: CallOptions): Promise<ReplayContextResponse> {
    return this.#memory.replayContext({ receiptId, userId: userOf(of) }, options);
  }

  /** What came in, went out and changed from the receipt `before` to the receipt `after`, and why. */
  async diff(before: string, after: string, of: OfUser = {}, options?: CallOptions): Promise<DiffContextsResponse> {
    const request = { beforeReceiptId: before, afterReceiptId: after, userId: userOf(of) };
    return this.#memory.diffContexts(request, options);
  }
}

function userOf(of: OfUser): string {
  requireKnown(of, ["userId"], "option");
  return of.userId ?? "";
}
