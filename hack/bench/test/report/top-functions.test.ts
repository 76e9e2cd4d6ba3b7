import t from 'tap';
import { topFunctions } from '../../report/top-functions.ts';

const frame = (functionName: string, url: string, lineNumber: number) => ({ functionName, url, lineNumber });
const profile = {
  nodes: [
    { id: 1, callFrame: frame('(idle)', '', -1) },
    { id: 2, callFrame: frame('decide', 'file:///repo/services/a/src/decide.ts', 9) },
    { id: 3, callFrame: frame('decide', 'file:///repo/services/a/src/decide.ts', 9) },
    { id: 4, callFrame: frame('', 'file:///repo/node_modules/lib/main.js', 0) },
  ],
  startTime: 1000,
  samples: [1, 2, 4, 3, 4],
  timeDeltas: [100, 10, 20, 30, 1000],
};

t.test('time is summed by function, whoever called it, without idling', async (t) => {
  const window = { fromMicros: 0, toMicros: 1500 };
  t.same(topFunctions(profile, '/repo', window), [
    { name: 'decide', place: 'services/a/src/decide.ts:10', selfMicros: 40 },
    { name: '(anonymous)', place: 'lib/main.js:1', selfMicros: 20 },
  ]);
});

t.test('samples outside the time of interest do not count', async (t) => {
  const window = { fromMicros: 1120, toMicros: 1140 };
  t.same(topFunctions(profile, '/repo', window), [
    { name: '(anonymous)', place: 'lib/main.js:1', selfMicros: 20 },
  ]);
});
