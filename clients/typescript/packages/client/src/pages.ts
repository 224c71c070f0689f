// Lists in pages.

import type { CallOptions } from "./calls.js";
import { invalidField, otherType } from "./refusals.js";

const LARGEST_PAGE = 1000;

/**
 * All pages of a list, one after the other: `for await (const page of pages(remora.conversations.listMessages, {...}))`.
 * Each page has the timeout.
 */
export async function* pages<Request extends { pageToken?: string }, Page extends { nextPageToken: string }>(
  list: (request: Request, options?: CallOptions) => Promise<Page>,
  request: Request,
  options?: CallOptions,
): AsyncGenerator<Page, void, undefined> {
  let pageToken = request.pageToken ?? "";
  do {
    const page = await list({ ...request, pageToken }, options);
    yield page;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
}

/** The items of as many pages as have the first `limit` items, page by page. */
export async function taken<
  Request extends { pageToken?: string; pageSize?: number },
  Page extends { nextPageToken: string },
  Item,
>(
  list: (request: Request, options?: CallOptions) => Promise<Page>,
  request: Request,
  itemsOf: (page: Page) => readonly Item[],
  limit: number,
  options?: CallOptions,
): Promise<(readonly Item[])[]> {
  if (typeof limit !== "number" || Number.isNaN(limit)) {
    throw otherType("limit", limit, "a number");
  }
  if (limit < 0 || (Number.isFinite(limit) && !Number.isInteger(limit))) {
    throw invalidField("limit", `is ${limit}; it must be a whole number from 0 on, or Infinity`);
  }
  const found: (readonly Item[])[] = [];
  let missing = limit;
  for await (const page of pages(list, { ...request, pageSize: Math.min(limit, LARGEST_PAGE) }, options)) {
    found.push(itemsOf(page));
    missing -= itemsOf(page).length;
    if (missing <= 0) {
      break;
    }
  }
  return found;
}
