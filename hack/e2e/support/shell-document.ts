/** One block of commands of a document, and what it says comes out. */
export interface DocumentStep {
  /** Of the first command, from 1. */
  readonly line: number;
  readonly script: string;
  /** `…` stands for any text. Undefined where the document shows nothing. */
  readonly shown: string | undefined;
}

const fence = /^```(\w*)$/;

/** Finds the `sh` blocks of a Markdown document; a `text` block that comes next, whatever prose is between, is what it shows. */
export function documentSteps(markdown: string): readonly DocumentStep[] {
  const steps: DocumentStep[] = [];
  for (const { language, line, text } of fencedBlocks(markdown)) {
    const last = steps.at(-1);
    if (language === 'sh') steps.push({ line, script: text, shown: undefined });
    else if (language === 'text' && last) steps[steps.length - 1] = { ...last, shown: text };
  }
  return steps;
}

function fencedBlocks(markdown: string) {
  const blocks: { language: string; line: number; text: string }[] = [];
  let open: { language: string; line: number; lines: string[] } | undefined;
  for (const [index, line] of markdown.split('\n').entries()) {
    const language = fence.exec(line)?.[1];
    if (open === undefined) {
      if (language !== undefined) open = { language, line: index + 2, lines: [] };
    } else if (language === '') {
      blocks.push({ language: open.language, line: open.line, text: open.lines.join('\n') });
      open = undefined;
    } else open.lines.push(line);
  }
  return blocks;
}

/** Is that what the document shows? Blank lines and spaces at the ends do not count. */
export function isAsShown(shown: string, output: string): boolean {
  const [first = '', ...rest] = shown.trim().split('…');
  const text = output.trim();
  if (rest.length === 0) return text === first;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  // Nothing may come after the last part, unless a sign does.
  return at === text.length || rest.at(-1) === '';
}
