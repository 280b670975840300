#!/usr/bin/env python3
"""The workload around a wait for the GPU, as recorded by Nsight Systems, in PyTorch alone.

Matrix products have the recorded sizes and types; other kernels only take their recorded time (torch.cuda._sleep), the
host between two calls too. Copies, events, streams and waits are as recorded, or as a fix makes them.

    python replay.py                both ways, interleaved: as recorded, and with the waits fixed
    python replay.py --sync         as recorded only
    python replay.py --no-sync      with the waits fixed only
"""
import argparse
import itertools
import os
import statistics
import sys
import time

import torch
