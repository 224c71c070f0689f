// What is stored and asked for: vectors about centres, as embeddings lie, and messages. They are the same in every process.

import type { EmbeddingAdapter, VectorItem } from "@voltagent/core";
import type { UIMessage } from "ai";

export const USER = "user";
const DIMENSION = 384;
const CENTRES = 200;
/** How far a vector lies from its centre, which has unit length, in each dimension. */
const SPREAD = 0.05;
/** A filter on one of them lets one vector in so many pass. */
const USERS = 100;
const SENTENCE = "The night train to Vienna leaves at ten and arrives before the market opens. ";
const TEXT = SENTENCE.repeat(5);

/** Numbers from 0 to 1, the same for a seed: mulberry32. */
function uniform(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A number of the normal distribution, by the method of Box and Muller. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function unit(vector: number[]): number[] {
  const norm = Math.hypot(...vector);
  return vector.map((value) => value / norm);
}

const anywhere = uniform(0);
const centres = Array.from({ length: CENTRES }, () => unit(Array.from({ length: DIMENSION }, () => normal(anywhere))));

/** The vector of a number. */
export function vector(number: number): number[] {
  const random = uniform(number + 1);
  const centre = centres[Math.floor(random() * CENTRES)] as number[];
  return centre.map((value) => value + SPREAD * normal(random));
}

/** A batch of vectors for a collection, from a number on. */
export function vectorItems(first: number, count: number): VectorItem[] {
  return Array.from({ length: count }, (_, place) => {
    const number = first + place;
    return { id: `v${number}`, vector: vector(number), metadata: filterOf(number) };
  });
}

/** The metadata of a vector, and a filter that lets it pass. */
export function filterOf(number: number): Record<string, unknown> {
  return { userId: `u${number % USERS}` };
}

/** A message of about 380 bytes. */
export function message(number: number): UIMessage {
  return { id: `m${number}`, role: number % 2 ? "assistant" : "user", parts: [{ type: "text", text: text(number) }] };
}

export function messages(first: number, count: number): UIMessage[] {
  return Array.from({ length: count }, (_, place) => message(first + place));
}

/** A text whose vector is that of its number. */
export function text(number: number): string {
  return `${number}. ${TEXT}`;
}

/** Embeds a text as the number that it begins with, which takes next to no time. */
export class NumberedTexts implements EmbeddingAdapter {
  async embed(text: string): Promise<number[]> {
    return vector(Number.parseInt(text, 10));
  }

  async embedBatch(texts: string[]): Promise<number[][]> {
    return Promise.all(texts.map((text) => this.embed(text)));
  }

  getDimensions(): number {
    return DIMENSION;
  }

  getModelName(): string {
    return "numbered-texts";
  }
}
