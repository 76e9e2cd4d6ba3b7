/** The anchors that GitHub gives the headings of a page: its words in small letters, with `-1` and so on where they come again. */
export function headingAnchors(text: string): ReadonlySet<string> {
  const times = new Map<string, number>();
  const anchors = new Set<string>();
  for (const line of outsideCode(text)) {
    const [, heading] = /^#{1,6} (.*)$/.exec(line.text) ?? [];
    if (heading === undefined) continue;
    const slug = slugOf(heading);
    const before = times.get(slug) ?? 0;
    times.set(slug, before + 1);
    anchors.add(before === 0 ? slug : `${slug}-${before}`);
  }
  return anchors;
}

/** The lines of a page without what is code. */
export function proseOf(text: string): { readonly prose: string; readonly line: number }[] {
  return outsideCode(text).map(({ text: line, number }) => ({
    prose: line.replace(/`[^`]*`/g, ''),
    line: number,
  }));
}

function outsideCode(text: string): { text: string; number: number }[] {
  let isCode = false;
  return text.split('\n').flatMap((line, index) => {
    const isFence = line.trimStart().startsWith('```');
    if (isFence) isCode = !isCode;
    return isFence || isCode ? [] : [{ text: line, number: index + 1 }];
  });
}

function slugOf(heading: string): string {
  return heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');
}
