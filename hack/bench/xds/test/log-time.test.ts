import t from 'tap';
import { lastLogTime } from '../log-time.ts';

const line = (message: string, ms: number) =>
  JSON.stringify({ '@timestamp': new Date(ms).toISOString(), level: 'info', '@message': message });

t.test('the last line with the message counts, and no other', async (t) => {
  const log = [line('rules served', 1000), line('rules served', 2000), line('listening', 3000), ''].join(
    '\n',
  );
  t.equal(lastLogTime(log, 'rules served'), 2000);
});

t.test('a message that was not logged has no time, nor has one whose line is cut', async (t) => {
  t.equal(lastLogTime(line('listening', 1), 'rules served'), undefined);
  t.equal(lastLogTime(line('rules served', 1).slice(5), 'rules served'), undefined);
});
