import { type Html, html } from '@tollgate/kit/html';
import type { Tone } from './text.ts';

/** A remark about a line. */
export interface LineNote {
  /** The first line is 1. */
  readonly line: number;
  readonly tone: Tone;
  readonly text: string | Html;
}

/** A text with line numbers. Notes are below their lines, which have ids such as `L3`. */
export function numberedLines(label: string, text: string, notes: readonly LineNote[]): Html {
  const byLine = Map.groupBy(notes, ({ line }) => line);
  return html`<div class="code" role="region" aria-label="${label}">${splitLines(text).map(
    (content, index) => {
      const line = index + 1;
      return html`<div id="L${line}"><span class="no">${line}</span><code>${content}</code></div>${byLine
        .get(line)
        ?.map((note) => html`<p class="note ${note.tone}">${note.text}</p>`)}`;
    },
  )}</div>`;
}

/** Lines that differ, with those around them. */
interface Hunk {
  readonly oldStart: number;
  readonly newStart: number;
  /** Each begins with a space, `-`, `+`, or `\` for a remark. */
  readonly lines: readonly string[];
}

/** The difference of two texts as a unified diff. */
export function unifiedDiff(label: string, hunks: readonly Hunk[]): Html {
  return html`<div class="code" role="region" aria-label="${label}">${hunks.map(
    (hunk, index) => html`${index > 0 && html`<p class="gap">…</p>`}${hunkLines(hunk)}`,
  )}</div>`;
}

/** Removed lines have the number of the old text, the others that of the new one. */
function hunkLines({ oldStart, newStart, lines }: Hunk): readonly Html[] {
  let [before, after] = [oldStart, newStart];
  return lines
    .filter((line) => !line.startsWith('\\'))
    .map((line) => {
      const isRemoved = line.startsWith('-');
      const number = isRemoved ? before : after;
      if (!line.startsWith('+')) before += 1;
      if (!isRemoved) after += 1;
      const css = isRemoved ? 'removed' : line.startsWith('+') && 'added';
      return html`<div${css && html` class="${css}"`}><span class="no">${number}</span><code>${line}</code></div>`;
    });
}

function splitLines(text: string): readonly string[] {
  return text.replace(/\n$/, '').split('\n');
}
