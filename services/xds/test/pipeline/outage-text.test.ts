import t from 'tap';
import { outageText } from '../../src/pipeline/outage-text.ts';

t.test('without an outage there is nothing to say', async (t) => {
  t.equal(outageText([]), '');
});

t.test('of many reasons the first are told, and how many there are besides', async (t) => {
  const outages = ['a', 'b', 'c', 'd', 'e'].map((reason) => ({ reason, sinceMs: 0 }));
  const since = '(since 1970-01-01T00:00:00.000Z)';
  t.equal(outageText(outages), `a ${since}; b ${since}; c ${since}; and 2 more`);
});
