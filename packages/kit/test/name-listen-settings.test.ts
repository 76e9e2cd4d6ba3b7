import t from 'tap';
import { nameListenSettings } from '../src/http-server.ts';

const settings = { host: 'HOST', port: 'PORT' };

t.test('a server that cannot listen is told with its settings', async (t) => {
  const cause = new Error('listen EADDRINUSE: address already in use 127.0.0.1:80');
  await t.rejects(nameListenSettings(Promise.reject(cause), settings), {
    message: `cannot listen where HOST and PORT say: ${cause.message}`,
    cause,
  });
});

t.test('of one that listens the answer is handed on', async (t) => {
  t.equal(await nameListenSettings(Promise.resolve(8080), settings), 8080);
});
