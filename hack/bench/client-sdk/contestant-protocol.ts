import type { Round, RoundOptions } from './measure-round.ts';

/** From the parent: work for a round. */
export type ContestantOrder = RoundOptions;

/** From a contestant: its name once it is ready, then what came of each round. */
export type ContestantReply =
  | { readonly kind: 'ready'; readonly name: string }
  | { readonly kind: 'round'; readonly round: Round }
  | { readonly kind: 'failed'; readonly message: string };
