// Waiting for a signal: one listener for each, however many calls it cancels, since Node takes more than ten for a leak.

interface Waiting {
  readonly cancels: Set<() => void>;
  readonly listener: () => void;
}

const waiting = new WeakMap<AbortSignal, Waiting>();

/** Calls `cancel` when the signal aborts, unless what is returned here is called before. */
export function onAbort(signal: AbortSignal, cancel: () => void): () => void {
  const { cancels, listener } = waiting.get(signal) ?? listening(signal);
  cancels.add(cancel);
  return () => {
    cancels.delete(cancel);
    if (cancels.size === 0) {
      signal.removeEventListener("abort", listener);
      waiting.delete(signal);
    }
  };
}

function listening(signal: AbortSignal): Waiting {
  const cancels = new Set<() => void>();
  const listener = () => {
    for (const cancel of [...cancels]) {
      cancel();
    }
  };
  const found = { cancels, listener };
  waiting.set(signal, found);
  signal.addEventListener("abort", listener);
  return found;
}

/** Waits so long, or until the signal aborts. */
export function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const end = () => {
      clearTimeout(timer);
      forget?.();
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    const forget = signal && onAbort(signal, end);
  });
}
