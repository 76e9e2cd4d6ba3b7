import { once } from 'node:events';

/** A part that answers. */
interface RunningPart {
  /** Completes the line that says it is ready: what it is, where it listens. */
  readonly detail: string;
  /** False once it has ended by itself. */
  isRunning(): boolean;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  /** The log so far. */
  logs(): string;
  /** Idempotent. */
  stop(): Promise<void>;
}

/** A program of the platform. */
export interface Part {
  /** Completes "starting …". */
  readonly name: string;
  /** Short name before its lines in the log. */
  readonly label: string;
  /** Advice for a part that does not start, or ends by itself. */
  readonly hint: string;
  /** Resolves when it answers. Throws, with its output in the message, when that takes too long. */
  start(options: StartOptions): Promise<RunningPart>;
}

export interface StartOptions {
  /** Aborts when the platform stops, also while a part starts. */
  readonly signal: AbortSignal;
  readonly onLine: (line: string) => void;
}

/** Receives the progress of the start, and the log. */
export interface Observer {
  readonly onStart?: (part: Part) => void;
  readonly onReady: (part: Part, detail: string, seconds: number) => void;
  /** A line that a part has logged. */
  readonly onLine: (part: Part, line: string) => void;
}

/** Enough for a stack trace or a list of wrong settings, and fits a terminal. */
const maxLines = 20;

/** A part did not start, or ended by itself. */
export class PartFailure extends Error {
  override readonly name = 'PartFailure';
  readonly lastLines: readonly string[];
  readonly hint: string;

  constructor(message: string, { hint }: Pick<Part, 'hint'>, logs: string, options?: ErrorOptions) {
    super(message, options);
    this.lastLines = logs.trimEnd().split('\n').slice(-maxLines);
    this.hint = hint;
  }
}

interface StartedPart {
  readonly part: Part;
  readonly instance: RunningPart;
}

/** Running parts. */
export class Platform {
  readonly #parts: readonly StartedPart[];
  readonly #stack: AsyncDisposableStack;

  private constructor(parts: readonly StartedPart[], stack: AsyncDisposableStack) {
    this.#parts = parts;
    this.#stack = stack;
  }

  /**
   * Starts the parts one after the other.
   *
   * @throws PartFailure when one does not start, the reason of the signal when it aborts meanwhile;
   * then nothing is left running.
   */
  static async start(toStart: readonly Part[], signal: AbortSignal, observer: Observer): Promise<Platform> {
    const running: StartedPart[] = [];
    const stack = new AsyncDisposableStack();
    try {
      for (const part of toStart) {
        observer.onStart?.(part);
        const startedMs = performance.now();
        const instance = await startPart(part, {
          signal,
          onLine: (line) => observer.onLine(part, line),
        });
        stack.defer(() => instance.stop());
        signal.throwIfAborted();
        running.push({ part, instance });
        observer.onReady(part, instance.detail, (performance.now() - startedMs) / 1000);
      }
    } catch (error) {
      await stack.disposeAsync();
      throw error;
    }
    return new Platform(running, stack);
  }

  /** The part that has ended by itself, if one has. */
  failure(): PartFailure | undefined {
    const dead = this.#parts.find(({ instance }) => !instance.isRunning());
    if (dead === undefined) return undefined;
    return new PartFailure(`${dead.part.name} has ended by itself`, dead.part, dead.instance.logs());
  }

  /**
   * Resolves when the signal aborts.
   *
   * @throws PartFailure when a part ends by itself before.
   */
  async untilStopped(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await Promise.race([once(signal, 'abort'), ...this.#parts.map(({ instance }) => instance.ended)]);
    const failure = this.failure();
    if (failure !== undefined && !signal.aborted) throw failure;
  }

  /** Stops all parts, the last one first. Idempotent. */
  async stop(): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

async function startPart(part: Part, options: StartOptions): Promise<RunningPart> {
  try {
    return await part.start(options);
  } catch (cause) {
    options.signal.throwIfAborted();
    const output = cause instanceof Error ? cause.message : String(cause);
    throw new PartFailure(`${part.name} did not start`, part, output, { cause });
  }
}
