import { type NodeAddress, parseNodeAddress } from './node-address.ts';

/** Where a node sends those who ask it for a key that it does not have. */
export interface Redirection {
  /** `moved`: the slot lives there now. `ask`: it is on its way there, and this key only has arrived or will be made there. */
  readonly kind: 'moved' | 'ask';
  readonly slot: number;
  readonly node: NodeAddress;
}

/** Reads the error `MOVED slot host:port` or `ASK slot host:port` of the node that was asked; undefined for any other. */
export function parseRedirection(message: string, asked: NodeAddress): Redirection | undefined {
  const match = /^(MOVED|ASK) (\d{1,5}) (?:\[(.+)\]|(\S*)):(\d{1,5})$/.exec(message);
  if (match === null) {
    return undefined;
  }
  const [, kind, slot, bracketed, bare, port] = match;
  const node = parseNodeAddress(bracketed ?? bare, Number(port), asked);
  return node && { kind: kind === 'ASK' ? 'ask' : 'moved', slot: Number(slot), node };
}
