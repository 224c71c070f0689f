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

/** Waits so long, or until one of the signals aborts. */
export function pause(milliseconds: number, ...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    if (signals.some((signal) => signal.aborted)) {
      resolve();
      return;
    }
    const end = () => {
      clearTimeout(timer);
      for (const forget of forgets) {
        forget();
      }
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    const forgets = signals.map((signal) => onAbort(signal, end));
  });
}
