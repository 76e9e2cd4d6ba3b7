import type { PageRequest } from '../http/api.ts';

export type Order = 'asc' | 'desc';

export interface OrderedPage extends PageRequest {
  readonly order: Order;
}

const reversed = { asc: 'desc', desc: 'asc' } as const satisfies Record<Order, Order>;

/**
 * The scan with the smallest offset that reads a page: in the other order for pages near the end.
 */
export function shortestScan(page: OrderedPage, total: number | undefined): OrderedPage {
  const { order, limit, offset } = page;
  if (total === undefined || offset <= total / 2) return page;
  return {
    order: reversed[order],
    limit: Math.max(0, Math.min(limit, total - offset)),
    offset: Math.max(0, total - offset - limit),
  };
}
