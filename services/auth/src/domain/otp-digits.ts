const fewest = 6;
const most = 10;

/** Digits of a code: what is asked for, or 6 where that is less or more than is any good. */
export function otpDigits(wanted: number): number {
  return wanted >= fewest && wanted <= most ? wanted : fewest;
}
