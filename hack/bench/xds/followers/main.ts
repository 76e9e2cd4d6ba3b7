// Many ADS clients in a process of their own, so that their work is not mistaken for that of the server or of the bench.
// It takes FollowersCommands from its parent, sends FollowersEvents back, and ends when the parent goes away.
import { monotonicMs } from '../monotonic-ms.ts';
import { follow } from './follow.ts';
import type { FollowersCommand, FollowersEvent, FollowersReport } from './protocol.ts';
import { userLimitsIn } from './read-response.ts';

interface Stream {
  version: string;
  last: Buffer;
  responses: number;
}

const tell = (event: FollowersEvent): void => {
  process.send?.(event);
};
let streams: Stream[] = [];
/** How many streams have each version; those that nobody has are not kept. */
const holders = new Map<string, number>();
let lastResponseMs = 0;

function start(address: string, count: number): void {
  streams = Array.from({ length: count }, () => ({ version: '', last: Buffer.alloc(0), responses: 0 }));
  for (const [index, stream] of streams.entries()) {
    follow({
      address,
      nodeId: `follower-${index}`,
      onResponse: (version, response) => note(stream, version, response),
      onEnd: ({ message }) => tell({ kind: 'failed', message }),
    });
  }
}

function note(stream: Stream, version: string, response: Buffer): void {
  lastResponseMs = monotonicMs();
  const left = (holders.get(stream.version) ?? 1) - 1;
  if (left > 0) holders.set(stream.version, left);
  else holders.delete(stream.version);
  const holding = (holders.get(version) ?? 0) + 1;
  holders.set(version, holding);
  stream.version = version;
  stream.last = response;
  stream.responses += 1;
  if (holding === streams.length) tell({ kind: 'settled', settled: { version, atMs: lastResponseMs } });
}

function report(): FollowersReport {
  const responses = streams.map((stream) => stream.responses);
  const [first] = streams;
  return {
    fewestResponses: Math.min(...responses),
    mostResponses: Math.max(...responses),
    lastResponseMs,
    isSame: streams.every(({ version }) => version === first?.version),
    userLimits: first === undefined ? {} : userLimitsIn(first.last),
  };
}

process.once('disconnect', () => process.exit(0));
// The parent is this same program: what it sends is a command.
process.on('message', (command: FollowersCommand) => {
  if (command.kind === 'follow') start(command.address, command.streams);
  else tell({ kind: 'report', report: report() });
});
