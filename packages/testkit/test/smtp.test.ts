import t from 'tap';
import { parseMail } from '../src/smtp.ts';

const envelope = { from: 'a@example.com', to: ['b@example.com'] };

t.test('headers are unfolded and decoded, and can be repeated', (t) => {
  const mail = parseMail(
    [
      'Subject: =?UTF-8?Q?=C3=84rger_mit?=',
      ' =?UTF-8?B?IMOEdGhlcg==?=',
      'X-One: 1',
      'x-one: 2',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      '<p>=C3=A4 soft=',
      ' line</p>',
    ].join('\r\n'),
    envelope,
  );
  t.equal(mail.subject, 'Ärger mit Äther');
  t.same(mail.headers.get('x-one'), ['1', '2']);
  t.equal(mail.html, '<p>ä soft line</p>');
  t.match(mail, envelope);
  t.end();
});

t.test('bodies are base64 or plain', (t) => {
  const base64 = Buffer.from('<p>ä</p>').toString('base64');
  t.equal(parseMail(`Content-Transfer-Encoding: base64\r\n\r\n${base64}`, envelope).html, '<p>ä</p>');
  const plain = Buffer.from('X: y\r\n\r\n<p>ä</p>').toString('latin1');
  t.equal(parseMail(plain, envelope).html, '<p>ä</p>');
  t.end();
});

t.test('alternatives are found by type', (t) => {
  const mail = parseMail(
    [
      'Content-Type: multipart/alternative;',
      ' boundary="--x"',
      '',
      '----x',
      'Content-Type: text/plain; charset=utf-8',
      'Content-Transfer-Encoding: base64',
      '',
      Buffer.from('ä').toString('base64'),
      '----x',
      'Content-Type: text/html',
      '',
      '<p>',
      'a</p>',
      '----x--',
      '',
    ].join('\r\n'),
    envelope,
  );
  t.equal(mail.text, 'ä');
  t.equal(mail.html, '<p>\r\na</p>');
  t.end();
});
