/**
 * Runs a program and ends it with `$1` when standard input closes, or with the signal that is
 * written there. Node closes that pipe when it stops the program; the kernel closes it when the
 * parent process dies, however it dies. An exit handler in Node would not survive SIGKILL.
 *
 * The shell ends once it has waited for the program: its ports are free by then, and a caller can
 * start it again. The end of its output would not show that, because the kernel closes output
 * before sockets. The process ID of the program is written to file descriptor 3.
 */
const script = `
signal=$1
shift
exec 4<&0 </dev/null
"$@" 3>&- 4<&- &
server=$!
echo $server >&3
exec 3>&-
{ read -r named <&4; kill -"\${named:-$signal}" $server; } >/dev/null 2>&1 &
watchdog=$!
exec 4<&-
wait $server
status=$?
kill $watchdog 2>/dev/null
exit $status
`;

/**
 * Arguments of `/bin/sh` that run a program which ends with its parent. File descriptors 0 and 3
 * must be open.
 */
export function watchdogArguments(
  signal: 'INT' | 'TERM',
  command: string,
  args: readonly string[],
): string[] {
  return ['-c', script, 'sh', signal, command, ...args];
}
