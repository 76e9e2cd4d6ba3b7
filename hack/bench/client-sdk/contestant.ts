// One contestant of the SDK benchmark, alone in a process, as a library is in an application. Arguments: the list, the place in
// it, the origin of the server. Takes ContestantOrders from its parent, answers each, and ends with it.

import { contestantLists, isContestantList } from './contestant-lists.ts';
import type { ContestantOrder, ContestantReply } from './contestant-protocol.ts';
import { measureRound } from './measure-round.ts';

const [list = '', index = '', origin = ''] = process.argv.slice(2);
const work = isContestantList(list) ? contestantLists[list](origin)[Number(index)] : undefined;
if (work === undefined) throw new Error(`there is no contestant ${index} of '${list}'`);
const { name, run } = work;

function reply(message: ContestantReply): void {
  process.send?.(message);
}

process.once('disconnect', () => process.exit());
// The parent is this same program: what it sends is an order.
process.on('message', async (order: ContestantOrder) => {
  try {
    reply({ kind: 'round', round: await measureRound(run, order) });
  } catch (error) {
    reply({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
  }
});
reply({ kind: 'ready', name });
