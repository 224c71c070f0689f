// Lists in pages.

import type { CallOptions } from "./calls.js";

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
