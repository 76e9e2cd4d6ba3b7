import { headingAnchors } from '../check/links.ts';

/**
 * Links within a page, whose `-1` no heading has, without it. The plugin that writes the pages numbers a name that it comes
 * across twice, and some names it comes across twice have one heading.
 */
export function mendAnchors(page: string): string {
  const anchors = headingAnchors(page);
  return page.replace(/\]\(#([\w-]+)-\d+\)/g, (link, anchor: string) =>
    !anchors.has(link.slice(3, -1)) && anchors.has(anchor) ? `](#${anchor})` : link,
  );
}
