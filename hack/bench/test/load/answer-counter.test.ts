import t from 'tap';
import { createAnswerCounter } from '../../load/answer-counter.ts';

const noBody = Buffer.alloc(0);

t.test('only answers with grpc-status 0 are decisions', async (t) => {
  const counter = createAnswerCounter();
  counter.count({ grpcStatus: '0', grpcMessage: '', body: Buffer.from([0, 0, 0, 0, 2, 8, 1]) });
  counter.count({ grpcStatus: '0', grpcMessage: '', body: Buffer.from([0, 0, 0, 0, 2, 8, 2]) });
  counter.count({ grpcStatus: '2', grpcMessage: 'no', body: noBody });
  counter.count({ grpcStatus: 'none', grpcMessage: '', body: noBody });
  t.same(counter.counts(5), { decisions: 2, overLimit: 1, failures: { '2: no': 1, none: 1 }, elapsedMs: 5 });
});

t.test('a server that says something else each time does not fill the memory', async (t) => {
  const counter = createAnswerCounter();
  for (let i = 0; i < 100; i++) counter.count({ grpcStatus: '2', grpcMessage: `error ${i}`, body: noBody });
  const { failures } = counter.counts(1);
  t.equal(Object.keys(failures).length, 21);
  t.equal(failures.other, 80);
});
