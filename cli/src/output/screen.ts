import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Screen, Terminal } from './terminal.ts';

/**
 * The alternate screen, without a cursor, and without lines that continue on the next one: those
 * that are too long are cut by the terminal, which knows how wide characters are.
 */
const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const leave = '\u001b[?7h\u001b[?25h\u001b[?1049l';

interface RepeatOptions<T> {
  /** Ends the display. */
  readonly signal: AbortSignal;
  readonly intervalMs: number;
  readonly read: () => Promise<T>;
  /** Writes at most so many lines. */
  readonly draw: (buffer: Terminal, value: T, rows: number) => void;
}

/**
 * Shows a value, and the next one after each interval, until the signal aborts. It is drawn again
 * when the size of the terminal changes. The screen is as before afterwards, also after an error.
 */
export async function showRepeatedly<T>(
  terminal: Terminal,
  screen: Screen,
  { signal, intervalMs, read, draw }: RepeatOptions<T>,
): Promise<void> {
  let show = (): void => {};
  terminal.print(enter);
  const unsubscribe = screen.onResize(() => show());
  try {
    while (!signal.aborted) {
      // An answer may take long.
      const value = await Promise.race([read().then((read) => ({ read })), once(signal, 'abort')]);
      if (!('read' in value)) break;
      show = () => redraw(terminal, (buffer) => draw(buffer, value.read, screen.rows()));
      show();
      await delay(intervalMs, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    unsubscribe();
    terminal.print(leave);
  }
}

/** Overwrites the lines, and clears what remains of the last ones. */
function redraw(terminal: Terminal, draw: (buffer: Terminal) => void): void {
  let text = '';
  draw({
    ...terminal,
    print(part) {
      text += part;
    },
    warn(line) {
      text += `${line}\n`;
    },
  });
  // A line feed at the end would scroll a full screen.
  terminal.print(`\u001b[H${text.trimEnd().replaceAll('\n', '\u001b[K\n')}\u001b[J`);
}
