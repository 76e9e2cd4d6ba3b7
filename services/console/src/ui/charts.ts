import { type Html, html } from '@tollgate/kit/html';

/** How full a limit is. */
export function limitBar({
  used,
  limit,
  isRefusing = false,
}: {
  readonly used: number;
  readonly limit: number;
  readonly isRefusing?: boolean;
}): Html {
  const share = limit > 0 ? Math.min(used / limit, 1) : 1;
  const state = isRefusing || share >= 1 ? 'over' : share >= 0.8 ? 'near' : 'free';
  const text = `${used} of ${limit} used${isRefusing ? ', refused now' : ''}`;
  return bar(state, text, html`<rect width="${(share * 100).toFixed(1)}" height="1"/>`);
}

/**
 * A period as a bar below the last days, of which the right end is now. The text has it relative to
 * now.
 */
export function periodBar(
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  { days, nowMs, label }: { readonly days: number; readonly nowMs: number; readonly label: string },
): Html {
  const position = (ms: number) =>
    Math.min(100, Math.max(0, 100 - ((nowMs - ms) / (days * 86_400_000)) * 100));
  // A short period is visible, too.
  const x = Math.min(position(fromMs), 99);
  const width = Math.max(1, position(toMs) - x);
  return bar('period', label, html`<rect x="${x.toFixed(1)}" width="${width.toFixed(1)}" height="1"/>`);
}

/** Its rectangle is in percent of the width. */
function bar(kind: string, label: string, rectangle: Html): Html {
  return html`<svg class="bar ${kind}" role="img" aria-label="${label}" viewBox="0 0 100 1" preserveAspectRatio="none"><title>${label}</title>${rectangle}</svg>`;
}

/** A line without axes, from the oldest value to the newest. Gaps are left out. */
export function sparkline(values: readonly (number | undefined)[], label: string): Html {
  const max = Math.max(1e-9, ...values.map((value) => value ?? 0));
  const points = values.flatMap((value, index) =>
    value === undefined
      ? []
      : [
          `${((index / Math.max(1, values.length - 1)) * 100).toFixed(1)},${(20 - (value / max) * 18 - 1).toFixed(1)}`,
        ],
  );
  return html`<svg class="spark" role="img" aria-label="${label}" viewBox="0 0 100 20" preserveAspectRatio="none"><polyline points="${points.join(' ')}"/></svg>`;
}
