// The size of requests that hold a list: a longer list is sent in several.

/** Bytes of elements in one request. Every server takes requests of 4 MiB. */
export const REQUEST_BYTES = 3 * 1024 * 1024;
