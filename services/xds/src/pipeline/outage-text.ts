import type { SourceOutage } from '../ports/resource-source.ts';

/** A probe shows the beginning of its answer at best, and one missing right is mended like the next. */
const maxOutages = 3;

/** What keeps a source from following its objects, and since when, for people; empty when nothing does. */
export function outageText(outages: readonly SourceOutage[]): string {
  const told = outages.slice(0, maxOutages).map(textOf);
  const left = outages.length - told.length;
  return [...told, ...(left > 0 ? [`and ${left} more`] : [])].join('; ');
}

function textOf({ reason, sinceMs }: SourceOutage): string {
  return `${reason} (since ${new Date(sinceMs).toISOString()})`;
}
