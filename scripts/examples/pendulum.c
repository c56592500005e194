/* The period of a pendulum of 1 m, for an angle in degrees from which it starts: one line, the angle
 * and the period in seconds. For program_scan.py. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const double g = 9.80665, dt = 1e-6;
    if (argc != 2) {
        fprintf(stderr, "usage: %s DEGREES\n", argv[0]);
        return 2;
    }
    double start = atof(argv[1]), angle = start * acos(-1) / 180, speed = 0, t = 0;
    if (!(start > 0 && start < 180)) {
        fprintf(stderr, "the angle is %s: expected more than 0 and less than 180 degrees\n", argv[1]);
        return 2;
    }
    /* It passes the lowest point after a quarter of the period. */
    while (angle > 0) {
        speed -= g * sin(angle) * dt;
        angle += speed * dt;
        t += dt;
    }
    printf("%g %.4f\n", start, 4 * t);
    return 0;
}
