import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t from 'tap';
import { createCommandLogger } from '../../src/cli/load-settings.ts';

t.test('LOG_FILE gets lines of LOG_LEVEL and above appended', (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const logFile = join(folder.path, 'auth.log');
  const settings = { logLevel: 'warn', logFile, mode: 'production' } as const;
  createCommandLogger(settings).info('not this one');
  createCommandLogger(settings).warn('first');
  createCommandLogger(settings).error('second');
  const lines = readFileSync(logFile, 'utf8').trim().split('\n');
  t.match(
    lines.map((line) => JSON.parse(line) as unknown),
    [
      { level: 'warning', '@message': 'first' },
      { level: 'error', '@message': 'second' },
    ],
  );
  t.end();
});

t.test('development mode logs text', (t) => {
  const folder = temporaryFolder();
  t.teardown(folder.remove);
  const logFile = join(folder.path, 'auth.log');
  createCommandLogger({ logLevel: 'info', logFile, mode: 'development' }).info({ a: 1 }, 'hello');
  t.match(readFileSync(logFile, 'utf8'), /level=info.*msg="?hello"? a=1/);
  t.end();
});
